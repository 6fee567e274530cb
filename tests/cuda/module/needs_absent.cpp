int attnscope_absent_value();
extern "C" const char* attnscope_cuda_abi() { return attnscope_absent_value() == 1 ? "" : "-"; }
