"""The Dask engine among people's clusters: killed workers, clients and schedulers, certificates, missing packages."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from command_line import command, environment
from dask_clusters import Cluster, free_port, shared_cluster
from separatrix.core import InvalidInput, MissingExtra
from separatrix.lab import Cell, DaskEngine, EngineError, JobTable, Limits, LocalEngine, Store
from short_experiments import SHORT
from trouble_experiments import TROUBLE

N_CELLS = 200

pytestmark = [  # connections that Dask leaves to the collector when a scheduler is gone
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def digests(store: Store) -> dict[str, str]:
    return dict(store.database.query("SELECT key, digest FROM records"))


def cells_of(n_cells: int, pause: float = 0.0) -> list[Cell]:
    return SHORT.cells(SHORT.params("smoke", n_cells=n_cells, pause=pause))


def test_what_cannot_work_is_one_sentence_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="address must be like tcp://host:8786"):
        DaskEngine("localhost")
    with pytest.raises(InvalidInput, match="workers must be an integer of at least 1"):
        DaskEngine(workers=0)
    with Store(tmp_path) as store, monkeypatch.context() as patched:
        patched.setattr("separatrix.lab.engines.dask_engine.CONNECT_SECONDS", 1)
        address = f"tcp://127.0.0.1:{free_port()}"
        with pytest.raises(EngineError, match=f"the Dask scheduler at {address} does not answer"):
            list(DaskEngine(address).run(cells_of(1), store, {}))
        assert JobTable(store).states() == {}
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"pip install separatrix\[cluster\]"):
        DaskEngine()


def test_a_cell_that_goes_on_too_long_is_set_aside(tmp_path: Path) -> None:
    cells = TROUBLE.cells(TROUBLE.params("smoke", kinds=("spin", "calm"), amount=30.0))
    with Store(tmp_path) as store:
        engine = DaskEngine(shared_cluster(), limits=Limits(seconds=1.5))
        ended = {finished.key: finished.error for finished in engine.run(cells, store, {})}
    assert ended[cells[1].key] is None
    error = ended[cells[0].key]
    assert error is not None
    assert error.startswith("TimeLimit: stopped because it ran longer than 1.5 s")


def test_large_records_take_the_way_through_a_shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from separatrix.lab.engines import dask_tasks

    (cell,) = cells_of(1)
    monkeypatch.setattr(dask_tasks, "LARGE", 10)
    (tmp_path / "mark").touch()
    answer = dask_tasks.compute_text(cell.to_json(), None, {}, str(tmp_path), "mark")
    assert answer.startswith(f"@mark-{cell.key}")
    assert cell.key[:5] in answer
    assert dask_tasks.compute_text(cell.to_json(), None, {}, str(tmp_path / "none"), "mark").startswith("{")


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the local engine gives when nothing happens to it."""
    with Store(tmp_path_factory.mktemp("calm")) as store:
        list(LocalEngine(2).run(cells_of(N_CELLS, 0.2), store, {}))
        return digests(store)


def start_client(store: Path, address: str) -> subprocess.Popen[str]:
    changes = ("--set", f"n_cells={N_CELLS}", "--set", "pause=0.2")
    words = ("run", "short_experiments:short", *changes, "--engine", "dask", "--address", address)
    return subprocess.Popen(
        command(*words, "--store", str(store)), env=environment(), stderr=subprocess.PIPE, text=True
    )


def wait_for_records(folder: Path, count: int) -> None:
    while len(list(folder.glob("records/*/*.json"))) < count:
        time.sleep(0.05)


@pytest.mark.slow
def test_killed_workers_and_a_killed_client_lose_nothing(tmp_path: Path, calm: dict[str, str]) -> None:
    over, chooser, kills = threading.Event(), random.Random(0), [0]
    with Cluster(2, tmp_path) as cluster:

        def kill() -> None:
            """Every two seconds, if anything was done since the last time: on a busy machine a start takes longer."""
            seen = 0
            while not over.wait(2.0):
                if len(list((tmp_path / "store").glob("records/*/*.json"))) < seen + 4:
                    continue
                seen = len(list((tmp_path / "store").glob("records/*/*.json")))
                victim = chooser.randrange(2)
                os.killpg(cluster.workers[victim].pid, signal.SIGKILL)
                cluster.workers[victim].wait()
                cluster.workers[victim] = cluster.start_worker()
                kills[0] += 1

        killer = threading.Thread(target=kill)
        client = start_client(tmp_path / "store", cluster.address)
        wait_for_records(tmp_path / "store", 5)
        killer.start()
        try:
            wait_for_records(tmp_path / "store", 60)
            client.kill()
            client.wait()
            client = start_client(tmp_path / "store", cluster.address)
            _, err = client.communicate(timeout=280)
        finally:
            over.set()
            killer.join()
    assert client.returncode == 0, err
    print(f"{kills[0]} workers killed")
    assert_same(tmp_path / "store", calm)


@pytest.mark.slow
def test_a_killed_scheduler_loses_nothing(tmp_path: Path, calm: dict[str, str]) -> None:
    with Cluster(2, tmp_path) as cluster:
        client = start_client(tmp_path / "store", cluster.address)
        wait_for_records(tmp_path / "store", 60)
        cluster.kill_scheduler()
        cluster.restart_scheduler()
        cluster.workers += [cluster.start_worker() for _ in range(2)]
        _, err = client.communicate(timeout=280)
    assert client.returncode == 0, err
    assert_same(tmp_path / "store", calm)


def assert_same(folder: Path, calm: dict[str, str]) -> None:
    with Store(folder) as store:
        assert digests(store) == calm
        assert len(list(folder.glob("records/*/*.json"))) == N_CELLS
        assert JobTable(store).states() == {"done": N_CELLS}


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    made = subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip("openssl cannot make certificates here")
    return tmp_path


@pytest.mark.slow
def test_certificates_are_asked_for_and_taken(certificates: Path) -> None:
    from distributed import Security

    files = {"tls_ca_file": "cert.pem", "tls_client_cert": "cert.pem", "tls_client_key": "key.pem"}
    own: dict[str, Any] = {name: str(certificates / file) for name, file in files.items()}
    with Cluster(1, certificates, tls=certificates) as cluster, Store(certificates / "store") as store:
        engine = DaskEngine(cluster.address, security=Security(require_encryption=True, **own))
        assert [finished.error for finished in engine.run(cells_of(2), store, {})] == [None, None]
        with pytest.raises(EngineError, match="does not answer"):
            list(DaskEngine(cluster.address).run(cells_of(3), store, {}))


@pytest.mark.slow
def test_a_cluster_of_our_own_listens_to_this_machine_alone(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        engine = DaskEngine(workers=1)
        run = engine.run(cells_of(3), store, {})
        next(run)
        listening = subprocess.run(["ss", "-ltnp"], capture_output=True, text=True, check=False).stdout
        pids = [os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))]
        ours = [line.split()[3] for line in listening.splitlines() if any(f"pid={pid}," in line for pid in pids)]
        assert len(pids) > 1
        assert len(list(run)) == 2
    if not listening:
        pytest.skip("the system does not tell who listens")
    assert ours
    assert all(address.startswith("127.0.0.1:") for address in ours), ours


@pytest.mark.parametrize("n_lost", [2, 5])
def test_a_worker_that_is_lost_while_the_cluster_starts_is_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_lost: int
) -> None:
    starts: list[int] = []

    def cluster(**options: Any) -> Any:
        starts.append(1)
        if len(starts) <= n_lost:
            raise RuntimeError("Nanny failed to start.")
        return contextlib.nullcontext("cluster")

    monkeypatch.setattr("distributed.LocalCluster", cluster)
    with contextlib.ExitStack() as stack, Store(tmp_path) as store:
        engine = DaskEngine(workers=1)
        if n_lost == 2:
            assert stack.enter_context(engine._own_cluster(store)) == "cluster"
        else:
            with pytest.raises(EngineError, match=r"no Dask cluster can be started .*: Nanny failed to start\."):
                stack.enter_context(engine._own_cluster(store))
    assert len(starts) == min(n_lost + 1, 5)
