#include "rewriter/ptx/constant.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace smt::ptx {

namespace {

constexpr int kDeepestExpression = 100;  // parentheses and unary operators
constexpr uint64_t kWarpSize = 32;       // WARP_SZ

template <typename To, typename From>
To cast_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

double as_double(const Constant& value) {
    switch (value.kind) {
        case Constant::Kind::kSigned:
            return static_cast<double>(static_cast<int64_t>(value.bits));
        case Constant::Kind::kUnsigned:
            return static_cast<double>(value.bits);
        case Constant::Kind::kFloat32:
            return cast_bits<float>(static_cast<uint32_t>(value.bits));
        default:
            return cast_bits<double>(value.bits);
    }
}

Constant of_double(double value) { return {Constant::Kind::kFloat64, cast_bits<uint64_t>(value)}; }
Constant of_bool(bool value) { return {Constant::Kind::kSigned, value ? 1u : 0u}; }
bool truth(const Constant& value) { return value.is_integer() ? value.bits != 0 : as_double(value) != 0; }

struct Operator {
    std::string_view sign;
    int level;  // binds tighter the higher
};
constexpr Operator kOperators[] = {
    {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5}, {"==", 6}, {"!=", 6}, {"<", 7},  {"<=", 7},
    {">", 7},  {">=", 7}, {"<<", 8}, {">>", 8}, {"+", 9}, {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10},
};
constexpr int kTermLevel = 10;

template <typename T>
bool compare(std::string_view sign, T a, T b, Constant* out) {
    if (sign == "==")
        *out = of_bool(a == b);
    else if (sign == "!=")
        *out = of_bool(a != b);
    else if (sign == "<")
        *out = of_bool(a < b);
    else if (sign == "<=")
        *out = of_bool(a <= b);
    else if (sign == ">")
        *out = of_bool(a > b);
    else if (sign == ">=")
        *out = of_bool(a >= b);
    else
        return false;
    return true;
}

// Null: fine. Otherwise why it has no value.
const char* apply_floating(std::string_view sign, double a, double b, Constant* out) {
    if (compare(sign, a, b, out)) return nullptr;
    if (sign == "+")
        *out = of_double(a + b);
    else if (sign == "-")
        *out = of_double(a - b);
    else if (sign == "*")
        *out = of_double(a * b);
    else if (sign == "/")
        *out = of_double(a / b);
    else
        return "this operator takes integers";
    return nullptr;
}

uint64_t shift(uint64_t value, uint64_t by, bool left, bool is_signed) {
    if (by > 63) return !left && is_signed && static_cast<int64_t>(value) < 0 ? ~0ull : 0;
    if (left) return value << by;
    return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(value) >> by) : value >> by;
}

uint64_t divide(uint64_t a, uint64_t b, bool remainder, bool is_signed) {
    if (!is_signed) return remainder ? a % b : a / b;
    if (b == ~0ull) return remainder ? 0 : 0 - a;  // the smallest number by -1 would trap
    int64_t x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
    return static_cast<uint64_t>(remainder ? x % y : x / y);
}

const char* apply_integer(std::string_view sign, const Constant& x, const Constant& y, Constant* out) {
    bool is_signed = x.kind == Constant::Kind::kSigned && y.kind == Constant::Kind::kSigned;
    uint64_t a = x.bits, b = y.bits;
    bool compared = is_signed ? compare(sign, static_cast<int64_t>(a), static_cast<int64_t>(b), out)
                              : compare(sign, a, b, out);
    if (compared) return nullptr;
    out->kind = is_signed ? Constant::Kind::kSigned : Constant::Kind::kUnsigned;
    if (sign == "+")
        out->bits = a + b;
    else if (sign == "-")
        out->bits = a - b;
    else if (sign == "*")
        out->bits = a * b;
    else if (sign == "&")
        out->bits = a & b;
    else if (sign == "|")
        out->bits = a | b;
    else if (sign == "^")
        out->bits = a ^ b;
    else if (sign == "<<" || sign == ">>")
        *out = {x.kind, shift(a, b, sign == "<<", x.kind == Constant::Kind::kSigned)};
    else if (b == 0)
        return "division by zero";
    else
        out->bits = divide(a, b, sign == "%", is_signed);
    return nullptr;
}

const char* apply(std::string_view sign, const Constant& a, const Constant& b, Constant* out) {
    if (sign == "&&") return *out = of_bool(truth(a) && truth(b)), nullptr;
    if (sign == "||") return *out = of_bool(truth(a) || truth(b)), nullptr;
    if (a.is_integer() && b.is_integer()) return apply_integer(sign, a, b, out);
    return apply_floating(sign, as_double(a), as_double(b), out);
}

bool parse_integer(Cursor& cursor, const Token& token, Constant* value) {
    std::string_view digits = token.text;
    bool is_unsigned = digits.back() == 'U';
    if (is_unsigned) digits.remove_suffix(1);
    int base = 10;
    if (digits.size() > 1 && digits[0] == '0') {
        char marker = static_cast<char>(digits[1] | 0x20);
        base = marker == 'x' ? 16 : marker == 'b' ? 2 : 8;
        digits.remove_prefix(base == 8 ? 1 : 2);
    }
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value->bits, base);
    if (error == std::errc::result_out_of_range)
        return cursor.fail(token, fmt::format("{} does not fit in 64 bits", in_words(token)));
    if (error != std::errc() || end != digits.data() + digits.size())
        return cursor.fail(token, fmt::format("{} is no number", in_words(token)));
    is_unsigned |= value->bits >> 63 != 0;
    value->kind = is_unsigned ? Constant::Kind::kUnsigned : Constant::Kind::kSigned;
    return true;
}

class Expression {
public:
    explicit Expression(Cursor& cursor) : cursor_(cursor) {}

    bool conditional(Constant* value) {
        if (!binary(1, value)) return false;
        if (!cursor_.accept_sign("?")) return true;
        if (!enter()) return false;
        Constant yes, no;
        if (!conditional(&yes) || !cursor_.expect_sign(":", "of the conditional") || !conditional(&no))
            return false;
        --depth_;
        *value = truth(*value) ? yes : no;
        return true;
    }

    // Operators that bind at least as tightly as `level`.
    bool binary(int level, Constant* value) {
        if (!unary(value)) return false;
        while (const Operator* found = binary_operator(level)) {
            Token sign = cursor_.take();
            Constant right;
            if (!binary(found->level + 1, &right)) return false;
            if (const char* problem = apply(sign.text, *value, right, value))
                return cursor_.fail(sign, problem);
        }
        return true;
    }

private:
    bool enter() {
        return ++depth_ <= kDeepestExpression ||
               cursor_.fail(cursor_.peek(), "this expression is nested too deeply");
    }

    const Operator* binary_operator(int level) const {
        for (const Operator& candidate : kOperators)
            if (candidate.level >= level && cursor_.at_sign(candidate.sign)) return &candidate;
        return nullptr;
    }

    bool unary(Constant* value) {
        for (std::string_view sign : {"-", "+", "~", "!"}) {
            if (!cursor_.at_sign(sign)) continue;
            Token token = cursor_.take();
            if (!enter() || !unary(value)) return false;
            --depth_;
            return apply_unary(token, value);
        }
        return primary(value);
    }

    bool apply_unary(const Token& sign, Constant* value) {
        if (sign.text == "!") *value = of_bool(!truth(*value));
        if (sign.text == "~" && !value->is_integer())
            return cursor_.fail(sign, "this operator takes integers");
        if (sign.text == "~") value->bits = ~value->bits;
        if (sign.text == "-" && value->is_integer()) value->bits = 0 - value->bits;
        if (sign.text == "-" && value->kind == Constant::Kind::kFloat32) value->bits ^= 1ull << 31;
        if (sign.text == "-" && value->kind == Constant::Kind::kFloat64) value->bits ^= 1ull << 63;
        return true;
    }

    bool primary(Constant* value) {
        if (cursor_.at_sign("(")) return parenthesised(value);
        if (cursor_.accept_identifier("WARP_SZ")) return *value = {Constant::Kind::kSigned, kWarpSize}, true;
        const Token token = cursor_.peek();
        if (token.kind == Token::Kind::kInteger) return cursor_.take(), parse_integer(cursor_, token, value);
        if (token.kind == Token::Kind::kDecimal) {
            cursor_.take();
            *value = of_double(std::strtod(std::string(token.text).c_str(), nullptr));
            return true;
        }
        if (token.kind != Token::Kind::kHexFloat) return cursor_.fail_expected("a number");
        cursor_.take();
        std::from_chars(token.text.data() + 2, token.text.data() + token.text.size(), value->bits, 16);
        value->kind = token.text.size() == 10 ? Constant::Kind::kFloat32 : Constant::Kind::kFloat64;
        return true;
    }

    bool parenthesised(Constant* value) {
        cursor_.take();
        if (!enter()) return false;
        for (auto [word, kind] :
             {std::pair("s64", Constant::Kind::kSigned), std::pair("u64", Constant::Kind::kUnsigned)}) {
            if (!cursor_.accept_word(word)) continue;
            if (!cursor_.expect_sign(")", "after the cast") || !unary(value)) return false;
            if (!value->is_integer()) return cursor_.fail(cursor_.peek(), "this cast takes integers");
            value->kind = kind;
            return --depth_, true;
        }
        if (!conditional(value) || !cursor_.expect_sign(")", "in the expression")) return false;
        return --depth_, true;
    }

    Cursor& cursor_;
    int depth_ = 0;
};

}  // namespace

bool at_constant(const Cursor& cursor) {
    switch (cursor.peek().kind) {
        case Token::Kind::kInteger:
        case Token::Kind::kDecimal:
        case Token::Kind::kHexFloat:
            return true;
        case Token::Kind::kIdentifier:
            return cursor.peek().text == "WARP_SZ";
        case Token::Kind::kSign:
            return cursor.at_sign("-") || cursor.at_sign("+") || cursor.at_sign("~") || cursor.at_sign("!") ||
                   cursor.at_sign("(");
        default:
            return false;
    }
}

bool parse_constant(Cursor& cursor, Constant* value) { return Expression(cursor).conditional(value); }
bool parse_constant_term(Cursor& cursor, Constant* value) {
    return Expression(cursor).binary(kTermLevel, value);
}

bool parse_count(Cursor& cursor, uint64_t most, std::string_view what, uint64_t* value) {
    const Token token = cursor.peek();
    Constant constant;
    if (!at_constant(cursor)) return cursor.fail_expected(what);
    if (!parse_constant(cursor, &constant)) return false;
    bool negative = constant.kind == Constant::Kind::kSigned && static_cast<int64_t>(constant.bits) < 0;
    if (!constant.is_integer() || negative || constant.bits > most)
        return cursor.fail(token, fmt::format("{} is an integer from 0 to {}", what, most));
    *value = constant.bits;
    return true;
}

bool parse_offset(Cursor& cursor, int64_t* offset) {
    while (cursor.at_sign("+") || cursor.at_sign("-")) {
        const Token sign = cursor.take();
        Constant term;
        if (!parse_constant_term(cursor, &term)) return false;
        if (!term.is_integer()) return cursor.fail(sign, "an offset is an integer");
        uint64_t sum = static_cast<uint64_t>(*offset);
        *offset = static_cast<int64_t>(sign.text == "+" ? sum + term.bits : sum - term.bits);
    }
    return true;
}

}  // namespace smt::ptx
