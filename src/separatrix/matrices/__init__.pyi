from .attention_instances import (
    AttentionInstance as AttentionInstance,
    attention_instance as attention_instance,
)
