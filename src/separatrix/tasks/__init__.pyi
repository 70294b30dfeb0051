from .semantic import LinearTask as LinearTask, semantic_task as semantic_task, white_regression as white_regression
