// Names that nvcc makes for what other files cannot name.
#include "rewriter/source/extract/names.h"

#include <catch2/catch.hpp>

using namespace smt::rewriter::source;

TEST_CASE("nvcc's names of a file are found in its symbols, and replaced by Clang's") {
    const std::string kernel = "_ZN32_GLOBAL__N__c2de202b_4_a_cu_main4anonEPi";
    const std::string variable =
        "_ZN30_INTERNAL_c2de202b_4_a_cu_main32_GLOBAL__N__c2de202b_4_a_cu_main7anonvarE";
    const FileNames names = find_file_names({"_Z4statPi", kernel, variable});
    CHECK(names.unnamed == "_GLOBAL__N__c2de202b_4_a_cu_main");
    CHECK(names.internal == "_INTERNAL_c2de202b_4_a_cu_main");
    CHECK(plain_symbol(kernel, names) == "_ZN12_GLOBAL__N_14anonEPi");
    CHECK(plain_symbol(variable, names) == "_ZN12_GLOBAL__N_17anonvarE");
    CHECK(plain_symbol("_Z4statPi", names) == "_Z4statPi");
}

TEST_CASE("a file without such names, and symbols that are no symbols") {
    CHECK(find_file_names({"_Z4statPi", "c_kernel"}).unnamed.empty());
    CHECK(find_file_names({"_GLOBAL__N__", "9_GLOBAL__N__x", "99999999999_GLOBAL__N__x"}).unnamed.empty());
    CHECK(plain_symbol("_Z1kPi", {}) == "_Z1kPi");
}
