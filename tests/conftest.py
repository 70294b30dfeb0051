from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Two processes run the tests, and those that tests start run beside them. A thread of OpenBLAS that waits for its turn
# keeps a core busy meanwhile: some rooms took twice their CPU time on a machine with other work. Said here, before
# torch and scipy are loaded, and so to all processes that follow; numpy may be there already (a plugin).
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[variable] = "1"
# Some virtual machines announce the tile registers of their processor (AMX) and end the process at the first product
# of half-precision matrices that uses them. Without them the same tests give the same numbers on more machines.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import pytest  # noqa: E402

import messages  # noqa: E402
import sampling  # noqa: E402
import shape_checks  # noqa: E402

if TYPE_CHECKING:
    import torch

os.environ.pop("COLUMNS", None)  # workers of pytest-xdist set it, and a command would wrap what it says

for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:  # as under nohup; commands that tests start would not hear them
        signal.signal(number, usual)

CHECKED: set[str] = set()
NO_DATA = "real data: set SEPARATRIX_DATA to the folder that holds them"


def data_folder() -> Path | None:
    """The folder of real data; none where the variable is not set or names no folder."""
    folder = os.environ.get("SEPARATRIX_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def prepare() -> None:
    """What a process needs that runs tests itself. The one that hands them out to others does without torch."""
    shape_checks.install()
    import hypothesis
    import threadpoolctl
    import torch

    threadpoolctl.threadpool_limits(limits=1)
    torch.set_num_threads(1)
    # The same examples on every run: a failure must be repeatable, and a pass must not depend on luck. With another
    # seed (the nightly run) other examples, and still repeatable: nothing is remembered between runs.
    hypothesis.settings.register_profile("every day", derandomize=True, deadline=None, max_examples=30)
    hypothesis.settings.register_profile("varied", derandomize=False, deadline=None, database=None)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    if not messages.hands_out(pluginmanager.get_plugin("pytestconfig")):
        prepare()  # before the folders below import the package
    usual = int(os.environ.get("SEPARATRIX_TEST_SEED", "0"))
    parser.addoption("--seed", type=int, default=usual, help="other random cases than those of every day (0)")


def pytest_report_header(config: pytest.Config) -> str:
    return f"random cases: --seed {config.getoption('seed')}"


@pytest.hookimpl(tryfirst=True)  # before the plugin of hypothesis reads its seed
def pytest_configure(config: pytest.Config) -> None:
    number = config.getoption("seed")
    if not messages.hands_out(config):
        import hypothesis

        from helpers import use_seed

        use_seed(number)
        hypothesis.settings.load_profile("varied" if number else "every day")
        if number and config.getoption("hypothesis_seed", None) is None:
            config.option.hypothesis_seed = str(number)
    config.addinivalue_line("markers", "checks(names, by): this test checks closed forms by an independent route")
    config.addinivalue_line(
        "markers", "sampled(count, each, across): so many cases in an ordinary run, the rest with the slow ones"
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        messages.say_less(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> messages.ByFile | None:
    return messages.ByFile(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Millions of objects that stay are not searched for garbage while they are made, nor ever after.

    Tests import more modules, whose objects stay as well: all objects are searched ten times as rarely as usual, young
    ones as always.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        young, middle, old = gc.get_threshold()
        gc.set_threshold(young, middle, 10 * old)
        gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("needs_data") and data_folder() is None:
        pytest.skip(NO_DATA)
    shape_checks.begin_file(item.nodeid.partition("::")[0])


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    sampling.mark_the_rest(items, config.getoption("seed"))
    for item in items:
        for mark in item.iter_markers("checks"):
            CHECKED.update(mark.args[0])


@pytest.fixture(scope="session", autouse=True)
def _one_backend() -> Iterator[None]:
    """Torch, unless a test says otherwise: what ``auto`` picks depends on what ran before."""
    from separatrix.core.arithmetic.backend import use_backend  # not before the checks of shapes are installed

    with use_backend("torch"):
        yield


@pytest.fixture
def checked() -> set[str]:
    """Names of all closed forms that some collected test checks."""
    return CHECKED


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this run of the tests: 0 unless ``--seed`` or SEPARATRIX_TEST_SEED says otherwise."""
    return int(request.config.getoption("seed"))


@pytest.fixture
def formulas_put_back() -> Iterator[None]:
    """A test that registers closed forms does not leave them to the others."""
    from separatrix.core import FORMULAS  # not before the checks of shapes are installed

    before = dict(FORMULAS)
    yield
    FORMULAS.clear()
    FORMULAS.update(before)


@pytest.fixture
def generator() -> torch.Generator:
    """A generator for this test alone."""
    from helpers import seeded

    return seeded(20251)


@pytest.fixture
def data_dir() -> Path:
    """The folder of real data, or a visible skip."""
    folder = data_folder()
    if folder is None:
        pytest.skip(NO_DATA)
    return folder
