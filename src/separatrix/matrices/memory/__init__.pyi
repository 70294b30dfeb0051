from .delay_lines import delay_line as delay_line, feedback_line as feedback_line
from .fisher_matrix import FisherMatrix as FisherMatrix, fisher_memory_matrix as fisher_memory_matrix
from .fisher_memory import FisherMemory as FisherMemory, fisher_memory_curve as fisher_memory_curve
