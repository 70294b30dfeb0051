from .diagnosis import (
    write_diagnosis_page as write_diagnosis_page,
    write_diagnosis_pdf as write_diagnosis_pdf,
)
from .html import write_report as write_report
