"""What every room stands on: checks, rounding, durable files, text, threads, progress, and settings of verbs."""
