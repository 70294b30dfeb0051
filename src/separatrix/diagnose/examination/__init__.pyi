from .entry import check as check, diagnose as diagnose
