from . import (
    agarwala2022 as agarwala2022,
    altafini2025 as altafini2025,
    anguita2024 as anguita2024,
    kerg2022 as kerg2022,
)
