from .evaluation import Answers as Answers, evaluate_relational as evaluate_relational
from .examination import RelationalExamination as RelationalExamination, examine_relational as examine_relational
from .oracle import OracleDecoder as OracleDecoder, oracle_answers as oracle_answers
from .run import (
    RelationalRun as RelationalRun,
    RelationalSettings as RelationalSettings,
    train_relational as train_relational,
)
