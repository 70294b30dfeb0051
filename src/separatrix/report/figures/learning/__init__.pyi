from .regime import draw_balance_profile as draw_balance_profile, draw_rich_lazy as draw_rich_lazy
