"""How many instances should prefill, and how many decode; how many hold attention, and how many experts."""
