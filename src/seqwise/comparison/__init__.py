"""Which family suits this data, under one budget, and why: plan, trials in processes of their own, verdict, report."""
