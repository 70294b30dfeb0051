from .deq_advisor import DeqAdvice as DeqAdvice, deq as deq
