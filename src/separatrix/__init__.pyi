from . import (
    advise as advise,
)
from . import (
    core as core,
)
from . import (
    diagnose as diagnose,
)
from . import (
    dynamics as dynamics,
)
from . import (
    experiments as experiments,
)
from . import (
    lab as lab,
)
from . import (
    matrices as matrices,
)
from . import (
    report as report,
)
from . import (
    sources as sources,
)
from . import (
    tasks as tasks,
)
from . import (
    theory as theory,
)

__version__: str
