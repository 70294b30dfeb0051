from .backend import Backend as Backend, current_backend as current_backend, use_backend as use_backend
