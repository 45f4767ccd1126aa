"""What reproduces papers and may change: training, the study of calibration error, baselines, logs."""
