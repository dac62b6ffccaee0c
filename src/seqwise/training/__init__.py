"""Three ways to learn, one stream of reports: counting, and gradients (EM follows with the HMM)."""
