// A library that the loader does not find when the program runs: as cuBLAS may be missing.
int attnscope_absent_value() { return 1; }
