"""Parts of tools/bench/demo and tools/bench/bench. Standard library only."""
