"""One file for each library: `VENDOR` (empty: either), `load`, which raises Absent, and `Work`, whose `once` returns its data."""

NAMES = {"runtime": "graphs, each thread's default stream", "rocblas": "rocBLAS", "hipblaslt": "hipBLASLt", "miopen": "MIOpen",
         "cublas": "cuBLAS", "cublaslt": "cuBLASLt", "cudnn": "cuDNN", "pytorch": "PyTorch"}
