// A libcuda.so.1 with nothing in it: the loader wants one for programs that run without smt and only compile.
