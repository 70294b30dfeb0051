from .diagnosis import diagnosis_figures as diagnosis_figures
from .experiment import draw_experiment as draw_experiment
from .sweep import draw_sweep as draw_sweep
