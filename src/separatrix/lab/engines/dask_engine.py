"""The engine of many machines: the same cells on a Dask cluster, one that people run already or one of this machine.

Dask starts a cell at least once and remembers nothing when its scheduler dies. So the client keeps the books: it leases
the cells in the job table of the store, sends them to the cluster, and publishes each record once, whoever computed it
and however often. Killing a worker costs what Dask starts again; killing the scheduler costs the cells in flight, which
are sent again when it is back; killing the client costs the same, and the next run goes on.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, final

from separatrix.core.disk import read_regular
from separatrix.core.errors import CorruptData, InvalidInput, MissingExtra
from separatrix.core.names import suggest_options
from separatrix.core.scalars import require_integer, require_positive

from ..experiment.cell import Cell
from ..experiment.definition import load
from ..experiment.limits import Limits, usual_limits
from ..experiment.record import Record
from ..store.records import Store
from .base import AbstractEngine, EngineError, Finished, RunInterrupted
from .computation import ONE_THREAD, counted_interrupts, explain_failure, require_importable
from .dask_tasks import LOG_VARIABLE, compute_text
from .jobs import LEASE_SECONDS, WORKER_LOST, JobTable, Lease
from .leases import LOOKS
from .local import physical_cores
from .process_names import process_name

POLL_SECONDS = 0.02
WATCH_SECONDS = 1.0
RECONNECT_SECONDS = 60.0
CONNECT_SECONDS = 20
LOOPBACK = "127.0.0.1:0"
"""Any free port, for programs of this machine alone."""
CLUSTER_STARTS = 5
IN_FLIGHT = 2000
"""Cells that are with the cluster at once; more wait in the job table, where other runs may take them."""


@final
@suggest_options
class DaskEngine(AbstractEngine):
    """Workers of a Dask cluster.

    Args:
        address: of the scheduler (``"tcp://..."``, ``"tls://..."``); a cluster of this machine, bound to 127.0.0.1, if
            not given. Certificates for TLS are those of Dask's own configuration, or ``security``.
        workers: processes of a cluster of this machine; the number of physical cores if not given.
        limits: of every cell, whatever its experiment says; a cell that is over its time has its worker restarted.
        usual: limits of cells whose experiment names none; if not given, those of the largest scale.
        security: a ``distributed.Security``; what Dask's configuration says if not given.
        reconnect_seconds: how long to wait for a scheduler that is gone.

    An interrupt keeps what was finished and gives the rest up at once; cells that train go on from their checkpoints.

    Raises:
        MissingExtra: the extra ``cluster`` is not installed.
        InvalidInput: an argument is wrong.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        workers: int | None = None,
        limits: Limits | None = None,
        usual: Limits | None = None,
        security: Any = None,
        reconnect_seconds: float = RECONNECT_SECONDS,
    ) -> None:
        _distributed()
        if address is not None and "://" not in address:
            raise InvalidInput(f"address must be like tcp://host:8786 or tls://host:8786; got {address!r}.")
        self._address = address
        self._workers = physical_cores() if workers is None else require_integer(workers, "workers", at_least=1)
        self._limits, self._usual = limits or Limits(), usual or usual_limits("paper")
        self._security = security
        self._reconnect_seconds = require_positive(reconnect_seconds, "reconnect_seconds")

    def run(self, cells: Sequence[Cell], store: Store, data: Mapping[str, str]) -> Iterator[Finished]:
        """See ``AbstractEngine.run``."""
        for cell in cells:
            require_importable(cell)
        table, session = JobTable(store), process_name(os.getpid())
        mark = f".client-{uuid.uuid4().hex}"
        with counted_interrupts() as interrupts, contextlib.ExitStack() as stack:
            address = self._address or stack.enter_context(self._own_cluster(store)).scheduler_address
            flight = _Flight(self, lambda: self._client(stack, address), table, session, store, dict(data), mark)
            table.enqueue(session, cells)
            (store.folder / mark).touch()
            try:
                yield from _collect(flight, len(cells), interrupts)
            finally:
                flight.land()
                table.leave(session)
                for left in store.folder.glob(f"{mark}*"):
                    left.unlink(missing_ok=True)

    def _client(self, stack: contextlib.ExitStack, address: str) -> Any:
        distributed = _distributed()
        try:
            client = distributed.Client(
                address, security=self._security, timeout=f"{CONNECT_SECONDS}s", set_as_default=False
            )
        except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise EngineError(f"the Dask scheduler at {address} does not answer: {reason}") from error
        stack.callback(_close_quietly, client)
        return client

    @contextlib.contextmanager
    def _own_cluster(self, store: Store) -> Iterator[Any]:
        """A cluster of this machine; what its workers print is kept while it stands."""
        store.logs.mkdir(exist_ok=True)
        log = store.logs / f"worker-{os.getpid()}-dask.log"
        try:
            with self._started_cluster(str(log)) as cluster:
                yield cluster
        finally:
            log.unlink(missing_ok=True)

    def _started_cluster(self, log: str) -> Any:
        """A new cluster; a worker that is lost while the cluster starts takes all of it along, so it is tried again."""
        for last in range(1, CLUSTER_STARTS + 1):
            try:
                return _distributed().LocalCluster(
                    n_workers=self._workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address=LOOPBACK,  # its server of pages listens to all the world unless it is told not to
                    worker_dashboard_address=LOOPBACK,
                    silence_logs=50,
                    security=self._security,
                    env={**ONE_THREAD, LOG_VARIABLE: log},
                    preload=["separatrix.lab.engines.dask_tasks"],
                )
            except (RuntimeError, OSError, TimeoutError) as error:
                if last == CLUSTER_STARTS:
                    reason = " ".join(str(error).split()) or type(error).__name__
                    raise EngineError(f"no Dask cluster can be started on this machine: {reason}") from error
        raise AssertionError

    def limits_of(self, cell: Cell) -> Limits:
        """The limits of one cell."""
        return self._limits.or_else(load(cell.entry).limits).or_else(self._usual)

    @property
    def reconnect_seconds(self) -> float:
        """How long to wait for a scheduler that is gone."""
        return self._reconnect_seconds


@final
class _Flight:
    """The cells that are with the cluster, and the client that sent them."""

    def __init__(
        self,
        engine: DaskEngine,
        connect: Callable[[], Any],
        table: JobTable,
        session: str,
        store: Store,
        data: dict[str, str],
        mark: str,
    ) -> None:
        self._engine, self.table, self.session = engine, table, session
        self._store, self._data, self._mark = store, data, mark
        self._leases: dict[str, Lease] = {}
        self._futures: dict[str, Any] = {}
        self._connect = connect
        self._client = connect()
        self._completed = _completed(self._client)
        self._watched = self._beaten = time.monotonic()

    def launch(self) -> None:
        """Lease and send as many cells as fit."""
        cells = []
        while len(self._leases) < IN_FLIGHT and (lease := self.table.take(self.session, self.session)) is not None:
            if self._store.read(lease.cell.key) is not None:
                self.table.finish_with_stored(lease)
                continue
            self._leases[lease.cell.key] = lease
            cells.append(lease.cell)
        self._send(cells)

    def _send(self, cells: Sequence[Cell]) -> None:
        if not cells:
            return
        futures = self._client.map(
            compute_text,
            [cell.to_json() for cell in cells],
            [self._engine.limits_of(cell).seconds for cell in cells],
            data=self._data,
            folder=str(self._store.folder),
            mark=self._mark,
            key=[f"separatrix-{uuid.uuid4().hex}" for _ in cells],
            pure=False,
        )
        for cell, future in zip(cells, futures, strict=True):
            self._futures[cell.key] = future
        self._completed.update(futures)

    def receive(self) -> None:
        """Publish what has arrived."""
        if self._completed.is_empty() or not self._completed.has_ready():
            return
        by_future = {future.key: key for key, future in self._futures.items()}
        for future, result in self._completed.next_batch(block=False):
            key = by_future.get(future.key)
            if key is None or key not in self._leases:
                continue
            if future.status == "finished":
                del self._futures[key]
                self._publish(self._leases.pop(key), result)
            elif future.status == "error":
                del self._futures[key]
                self.table.fail(self._leases.pop(key), _explained(result, future))

    def _publish(self, lease: Lease, text: str) -> None:
        try:
            if text.startswith("@"):
                place = self._store.folder / os.path.basename(text[1:])
                text = read_regular(place).decode()
                place.unlink(missing_ok=True)
            record = Record.from_text(text, name=f"the record of cell {lease.cell.key[:12]}")
            if record.cell.key != lease.cell.key:
                raise CorruptData("a worker sent the record of another cell.")
        except (CorruptData, OSError, UnicodeDecodeError) as error:
            self.table.fail(lease, explain_failure(error))
            return
        self.table.finish(lease, record)

    def watch(self) -> None:
        """Give signs of life, and come back after a scheduler was lost."""
        now = time.monotonic()
        if now - self._watched < WATCH_SECONDS:
            return
        self._watched = now
        if now - self._beaten > LEASE_SECONDS / LOOKS:
            self.table.renew(self.session)
            self._beaten = now
        if self._client.status != "running":
            self._wait_for_scheduler()
            return
        lost = [key for key, future in self._futures.items() if future.status in ("lost", "cancelled")]
        if lost:
            self._send_again(lost)

    def _wait_for_scheduler(self) -> None:
        """The client looks for it by itself for a while, then another does; what was in flight is sent again."""
        deadline = time.monotonic() + self._engine.reconnect_seconds
        while self._client.status != "running":
            if time.monotonic() > deadline:
                raise EngineError(
                    f"the Dask scheduler has been gone for {self._engine.reconnect_seconds:g} s; finished cells are "
                    "kept: continue with separatrix resume when it is back."
                )
            if self._client.status == "closed":
                with contextlib.suppress(EngineError):
                    self._client = self._connect()
                    self._completed = _completed(self._client)
            time.sleep(0.1)
        self._send_again(list(self._futures))

    def _send_again(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._futures.pop(key)
        self._send([self._leases[key].cell for key in keys if key in self._leases])

    def land(self) -> None:
        """Give everything back."""
        with contextlib.suppress(Exception):
            self._client.cancel(list(self._futures.values()), force=True)
        for lease in self._leases.values():
            self.table.give_back(lease)
        self._leases.clear()
        self._futures.clear()


def _collect(flight: _Flight, n_cells: int, interrupts: list[int]) -> Iterator[Finished]:
    n_done = 0
    while n_done < n_cells:
        flight.launch()
        flight.receive()
        flight.watch()
        finished = flight.table.collect(flight.session)
        n_done += len(finished)
        for key, error in finished:
            yield Finished(key, error)
        if interrupts:  # all that was published has been told of
            raise RunInterrupted(n_done, n_cells, interrupts[0])
        if not finished:
            time.sleep(POLL_SECONDS)


def _explained(error: Any, future: Any) -> str:
    """The failure of a task in the words of the local engine."""
    if isinstance(error, tuple) and len(error) == 3:
        error = error[1]
    if not isinstance(error, BaseException):
        error = future.exception()
    if type(error).__name__ == "KilledWorker":
        return f"{WORKER_LOST}: {' '.join(str(error).split())}"
    trace = future.traceback()
    return explain_failure(error.with_traceback(trace) if trace is not None else error)


def _completed(client: Any) -> Any:
    return _distributed().as_completed(with_results=True, raise_errors=False, loop=client.loop)


def _close_quietly(client: Any) -> None:
    with contextlib.suppress(Exception):
        client.close(timeout=5)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise MissingExtra(
            "the Dask engine needs distributed; install it with: pip install separatrix[cluster]"
        ) from None
    return distributed
