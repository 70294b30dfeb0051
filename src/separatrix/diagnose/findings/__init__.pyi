from .diagnosis import Diagnosis as Diagnosis, FaultFound as FaultFound
from .finding import Certainty as Certainty, Finding as Finding, Place as Place, Skipped as Skipped
from .severity import SEVERITIES as SEVERITIES
