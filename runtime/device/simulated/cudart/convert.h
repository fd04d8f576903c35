// Argument conversion from the runtime's types to the driver's. Both interfaces name the same things (a
// cudaStream_t is a CUstream; a device pointer is a void* in one and an integer in the other), so a generated
// call wraps each argument in as_driver(), which converts to the type of the driver's parameter. Pointed-to
// types must have the same size in both interfaces; otherwise the call does not compile.
#pragma once

#include <cstring>
#include <type_traits>

namespace smt::cudart {

template <typename T>
concept Complete = requires { sizeof(T); };

template <typename From, typename To>
constexpr bool same_shape() {
    if constexpr (!std::is_pointer_v<From> || !std::is_pointer_v<To>) {
        return true;
    } else {
        using A = std::remove_cv_t<std::remove_pointer_t<From>>;
        using B = std::remove_cv_t<std::remove_pointer_t<To>>;
        if constexpr (std::is_void_v<A> || std::is_void_v<B> || std::is_function_v<A> ||
                      std::is_function_v<B>)
            return true;
        else if constexpr (Complete<A> && Complete<B>)
            return sizeof(A) == sizeof(B);
        else
            return true;  // handles
    }
}

template <typename From>
struct Converted {
    From value;
    template <typename To>
    operator To() const {  // NOLINT(google-explicit-constructor): the parameter that it is given to says To
        static_assert(same_shape<From, To>(), "the two structs differ: write the call by hand");
        if constexpr (std::is_class_v<From>) {
            static_assert(sizeof(From) == sizeof(To));
            To to;
            std::memcpy(&to, &value, sizeof to);
            return to;
        } else {
            return (To)value;  // between handles, pointers, integers and enumerations
        }
    }
};

template <typename From>
Converted<From> as_driver(From value) {
    return {value};
}

}  // namespace smt::cudart
