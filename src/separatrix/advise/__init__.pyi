from .learning_dynamics import LearningDynamics as LearningDynamics, learning_dynamics as learning_dynamics
