from .deq_advisor import DeqAdvice as DeqAdvice, deq as deq
from .learning_dynamics import LearningDynamics as LearningDynamics, learning_dynamics as learning_dynamics
