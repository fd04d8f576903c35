#include <fmt/format.h>

#include <charconv>

#include "rewriter/ptx/parsing.h"

namespace smt::ptx {

namespace {

constexpr uint32_t kMostWords = 31;  // Instruction::type_places has a bit for each
constexpr size_t kMostOperands = 64;

bool parse_guard(Parsing& parsing, Instruction* instruction) {
    Cursor& cursor = parsing.cursor;
    Guard guard;
    guard.negated = cursor.accept_sign("!");
    const Token token = cursor.peek();
    if (!cursor.expect_identifier(&guard.name, "a predicate register after '@'")) return false;
    if (parsing.scopes.find(guard.name) != Scopes::Kind::kRegister)
        return cursor.fail(token, fmt::format("{} is no declared register", in_words(token)));
    instruction->guard = std::move(guard);
    return true;
}

bool take_number(std::string_view* text, char letter, uint16_t* number) {
    if (!text->starts_with(letter)) return false;
    auto [end, error] = std::from_chars(text->data() + 1, text->data() + text->size(), *number);
    if (error != std::errc()) return false;
    text->remove_prefix(static_cast<size_t>(end - text->data()));
    return *number != 0;
}

// m8n8, m16n8k16
std::optional<Shape> parse_shape(std::string_view text) {
    Shape shape;
    if (!take_number(&text, 'm', &shape.m) || !take_number(&text, 'n', &shape.n)) return std::nullopt;
    if (text.empty()) return shape;
    if (!take_number(&text, 'k', &shape.k) || !text.empty()) return std::nullopt;
    return shape;
}

// The instruction as far as it is written in one piece, for messages.
std::string written(const Cursor& cursor) {
    std::string text(cursor.peek().text);
    for (size_t i = 1; cursor.at(Token::Kind::kWord, i) && i <= kMostWords; ++i) {
        text += '.';
        text += cursor.peek(i).text;
    }
    return text;
}

bool parse_word(Cursor& cursor, const Token& word, Instruction* instruction) {
    uint32_t place = static_cast<uint32_t>(instruction->types.size() + instruction->modifiers.size());
    if (place == kMostWords) return cursor.fail(word, "too many modifiers");
    if (auto type = find_type(word.text)) {
        instruction->types.push_back(*type);
        instruction->type_places |= 1u << place;
        return true;
    }
    auto modifier = find_modifier(word.text);
    if (auto shape = parse_shape(word.text)) {
        modifier = Modifier::kShape;
        instruction->shape = *shape;
    }
    if (!modifier) return cursor.fail(word, fmt::format("unknown modifier {}", in_words(word)));
    if (!facts(instruction->opcode).modifiers.test(static_cast<size_t>(*modifier)))
        return cursor.fail(word,
                           fmt::format("{} takes no modifier {}", name(instruction->opcode), in_words(word)));
    instruction->modifiers.push_back(*modifier);
    return true;
}

bool parse_words(Cursor& cursor, Instruction* instruction) {
    while (cursor.at(Token::Kind::kWord))
        if (!parse_word(cursor, cursor.take(), instruction)) return false;
    uint32_t last = ((1u << instruction->types.size()) - 1) << instruction->modifiers.size();
    if (instruction->type_places == last) instruction->type_places = 0;
    return true;
}

// [(results),] target [, (arguments)] [, prototype]
bool parse_call(Parsing& parsing, Instruction* instruction) {
    Cursor& cursor = parsing.cursor;
    Operand results, target, arguments;
    results.kind = arguments.kind = Operand::Kind::kList;
    place(results, cursor.peek());
    if (cursor.at_sign("(")) {
        if (!parse_list_operand(parsing, &results) || !cursor.expect_sign(",", "before the function"))
            return false;
    }
    if (!parse_operand(parsing, &target)) return false;
    if (target.kind != Operand::Kind::kSymbol && target.kind != Operand::Kind::kRegister)
        return cursor.fail(cursor.peek(), "what is called is a function or a register");
    place(arguments, cursor.peek());
    if (cursor.at_sign(",") && cursor.at_sign("(", 1)) {
        cursor.take();
        if (!parse_list_operand(parsing, &arguments)) return false;
    }
    instruction->operands = {std::move(results), std::move(target), std::move(arguments)};
    if (!cursor.accept_sign(",")) return true;
    return parse_label_operand(parsing, &instruction->operands.emplace_back());
}

bool is_label(Opcode opcode, size_t index) {
    return (opcode == Opcode::kBra && index == 0) || (opcode == Opcode::kBrx && index == 1);
}

bool parse_operands(Parsing& parsing, Instruction* instruction) {
    Cursor& cursor = parsing.cursor;
    if (cursor.at_sign(";")) return true;
    do {
        size_t index = instruction->operands.size();
        if (index == kMostOperands) return cursor.fail(cursor.peek(), "too many operands");
        Operand& operand = instruction->operands.emplace_back();
        bool good = is_label(instruction->opcode, index) ? parse_label_operand(parsing, &operand)
                                                         : parse_operand(parsing, &operand);
        if (!good) return false;
    } while (cursor.accept_sign(","));
    return true;
}

bool check_count(Cursor& cursor, const Token& token, const Instruction& instruction) {
    const OpcodeFacts& known = facts(instruction.opcode);
    int count = static_cast<int>(instruction.operands.size());
    if (count >= known.fewest && count <= known.most) return true;
    std::string takes = known.fewest == known.most ? fmt::format("{}", known.fewest)
                                                   : fmt::format("{} to {}", known.fewest, known.most);
    return cursor.fail(token,
                       fmt::format("takes {} operand{}, not {}", takes, takes == "1" ? "" : "s", count));
}

}  // namespace

bool parse_instruction(Parsing& parsing, Instruction* instruction) {
    Cursor& cursor = parsing.cursor;
    place(*instruction, cursor.peek());
    if (cursor.accept_sign("@") && !parse_guard(parsing, instruction)) return false;
    const Token token = cursor.peek();
    std::string subject = written(cursor);
    std::string word;
    if (!cursor.expect_identifier(&word, "an instruction")) return false;
    auto opcode = find_opcode(word);
    if (!opcode) return cursor.fail(token, fmt::format("unknown instruction '{}'", subject));
    instruction->opcode = *opcode;
    cursor.set_subject(std::move(subject));
    bool good = parse_words(cursor, instruction) &&
                (*opcode == Opcode::kCall ? parse_call(parsing, instruction)
                                          : parse_operands(parsing, instruction)) &&
                check_count(cursor, token, *instruction) && cursor.expect_sign(";", "after the operands");
    cursor.set_subject({});
    return good;
}

}  // namespace smt::ptx
