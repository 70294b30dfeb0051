from .places import (
    require_place_for_file as require_place_for_file,
    require_place_for_folder as require_place_for_folder,
    why_not as why_not,
)
from .reading import read_regular as read_regular
from .whole import flush_folder as flush_folder, write_text_whole as write_text_whole, written_whole as written_whole
