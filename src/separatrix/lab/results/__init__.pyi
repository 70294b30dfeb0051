from .crate import write_crate as write_crate
from .publication import (
    Publication as Publication,
    read_publication as read_publication,
    read_publications as read_publications,
)
from .publishing import judge_again as judge_again, publish as publish
from .reports import published_report as published_report
from .shipped import shipped_results as shipped_results
from .verification import CellCheck as CellCheck, Verification as Verification, verify as verify
