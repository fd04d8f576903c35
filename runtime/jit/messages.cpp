#include "runtime/jit/messages.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/jit/packer.h"

namespace smt::runtime::jit {

using protocol::Reader;

namespace {

void pack(Packer& to, const Source& source) {
    to.string(source.name);
    to.string(source.text);
    to.scalar<uint64_t>(2 * source.headers.size());
    for (const auto& [name, text] : source.headers) to.string(name), to.string(text);
    to.list(source.options);
    to.list(source.name_expressions);
}

bool read_language(Reader& reader, Language& language) {
    language = reader.scalar<Language>();
    return language >= Language::kCuda && language <= Language::kLink;
}

void pack(Packer& to, const std::set<ptx::Origins>& all) {
    to.scalar<uint64_t>(all.size());
    for (const ptx::Origins& origins : all) {
        to.scalar<uint64_t>(origins.size());
        for (const uint32_t offset : origins) to.scalar(offset);
    }
}

std::set<ptx::Origins> read_origins(Reader& reader) {
    std::set<ptx::Origins> all;
    const uint64_t count = reader.scalar<uint64_t>();
    if (count > kMostItems) reader.reject();
    for (uint64_t i = 0; i < count && reader.good(); ++i) {
        ptx::Origins origins;
        const uint64_t offsets = reader.scalar<uint64_t>();
        if (offsets > kMostItems) reader.reject();
        for (uint64_t j = 0; j < offsets && reader.good(); ++j) origins.insert(reader.scalar<uint32_t>());
        all.insert(std::move(origins));
    }
    return all;
}

bool send_all(int descriptor, const void* data, size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes) {
        ssize_t sent = send(descriptor, at, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        at += sent;
        bytes -= static_cast<size_t>(sent);
    }
    return true;
}

bool receive_all(int descriptor, void* data, size_t bytes) {
    char* at = static_cast<char*>(data);
    while (bytes) {
        ssize_t got = recv(descriptor, at, bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        bytes -= static_cast<size_t>(got);
    }
    return true;
}

}  // namespace

std::string read_string(Reader& reader) {
    const char* text = reader.string();
    return text ? text : "";
}

std::vector<std::string> read_list(Reader& reader) {
    std::vector<std::string> texts;
    uint64_t count = reader.scalar<uint64_t>();
    if (count > kMostItems) reader.reject();
    for (uint64_t i = 0; i < count && reader.good(); ++i) texts.push_back(read_string(reader));
    return texts;
}

Source read_source(Reader& reader) {
    Source source;
    source.name = read_string(reader);
    source.text = read_string(reader);
    std::vector<std::string> headers = read_list(reader);
    if (headers.size() % 2 != 0) reader.reject();
    for (size_t i = 0; i + 1 < headers.size(); i += 2) {
        source.headers.emplace_back(std::move(headers[i]), std::move(headers[i + 1]));
    }
    source.options = read_list(reader);
    source.name_expressions = read_list(reader);
    return source;
}

std::string encode(const Ready& ready) {
    Packer to;
    to.string(ready.nvrtc);
    to.string(ready.problem);
    to.string(ready.lacking);
    return to.take();
}

std::string encode(const Order& order) {
    Packer to;
    to.scalar(order.form);
    to.string(order.architecture);
    to.scalar(order.language);
    to.scalar<uint64_t>(order.registers.size());
    for (const auto& [kernel, registers] : order.registers) to.string(kernel), to.scalar(registers);
    to.string(order.ptx);
    to.string(order.directory);
    to.string(order.proves);
    to.array(order.image);
    to.list(order.variables);
    to.scalar<uint32_t>(order.inside);
    to.scalar<uint64_t>(order.inputs.size());
    for (const Input& input : order.inputs) {
        to.scalar(input.type);
        to.scalar(input.packed);
        to.scalar(input.bytes);
        to.string(input.name);
        to.array(input.data);
    }
    pack(to, order.source);
    return to.take();
}

std::string encode(const Result& result) {
    Packer to;
    to.array(result.image);
    to.scalar<uint64_t>(result.kernels.size());
    for (const CompiledKernel& kernel : result.kernels) {
        to.string(kernel.name);
        to.string(kernel.symbol);
        to.string(kernel.managed);
        to.string(kernel.reason);
        to.scalar(kernel.reuse);
        to.scalar<uint32_t>(kernel.system_atomics);
        to.scalar<uint32_t>(kernel.waits);
        to.string(kernel.unchecked);
        to.scalar<uint32_t>(kernel.checked.has_value());
        if (!kernel.checked) continue;
        pack(to, kernel.checked->reads);
        pack(to, kernel.checked->writes);
    }
    to.string(result.reason);
    to.string(result.log);
    to.scalar(result.language);
    to.scalar<uint32_t>(result.lasting);
    to.scalar<uint32_t>(result.refuted);
    to.scalar<uint32_t>(result.shared);
    to.scalar(result.trouble);
    return to.take();
}

std::optional<Ready> decode_ready(std::string_view bytes) {
    Reader reader(bytes.data(), bytes.size());
    Ready ready;
    ready.nvrtc = read_string(reader);
    ready.problem = read_string(reader);
    ready.lacking = read_string(reader);
    return if_whole(reader, std::move(ready));
}

std::optional<Order> decode_order(std::string_view bytes) {
    Reader reader(bytes.data(), bytes.size());
    Order order;
    order.form = reader.scalar<Form>();
    if (order.form != Form::kPtx && order.form != Form::kCubin) return std::nullopt;
    order.architecture = read_string(reader);
    if (!read_language(reader, order.language)) return std::nullopt;
    const uint64_t count = reader.scalar<uint64_t>();
    if (count > kMostItems) return std::nullopt;
    for (uint64_t i = 0; i < count && reader.good(); ++i) {
        const std::string kernel = read_string(reader);
        order.registers[kernel] = reader.scalar<uint32_t>();
    }
    order.ptx = read_string(reader);
    order.directory = read_string(reader);
    order.proves = read_string(reader);
    order.image = read_array(reader);
    order.variables = read_list(reader);
    order.inside = reader.scalar<uint32_t>() != 0;
    const uint64_t inputs = reader.scalar<uint64_t>();
    if (inputs > kMostItems) return std::nullopt;
    for (uint64_t i = 0; i < inputs && reader.good(); ++i) {
        Input input;
        input.type = reader.scalar<uint32_t>();
        input.packed = reader.scalar<uint32_t>();
        input.bytes = reader.scalar<uint64_t>();
        input.name = read_string(reader);
        input.data = read_array(reader);
        order.inputs.push_back(std::move(input));
    }
    order.source = read_source(reader);
    return if_whole(reader, std::move(order));
}

std::optional<Result> decode_result(std::string_view bytes) {
    Reader reader(bytes.data(), bytes.size());
    Result result;
    result.image = read_array(reader);
    const uint64_t count = reader.scalar<uint64_t>();
    if (count > kMostItems) return std::nullopt;
    for (uint64_t i = 0; i < count && reader.good(); ++i) {
        CompiledKernel kernel;
        kernel.name = read_string(reader);
        kernel.symbol = read_string(reader);
        kernel.managed = read_string(reader);
        kernel.reason = read_string(reader);
        kernel.reuse = reader.scalar<Reuse>();
        if (kernel.reuse > Reuse::kNever) reader.reject();
        kernel.system_atomics = reader.scalar<uint32_t>() != 0;
        kernel.waits = reader.scalar<uint32_t>() != 0;
        kernel.unchecked = read_string(reader);
        if (reader.scalar<uint32_t>() != 0) {
            kernel.checked.emplace();
            kernel.checked->reads = read_origins(reader);
            kernel.checked->writes = read_origins(reader);
        }
        result.kernels.push_back(std::move(kernel));
    }
    result.reason = read_string(reader);
    result.log = read_string(reader);
    if (!read_language(reader, result.language)) return std::nullopt;
    result.lasting = reader.scalar<uint32_t>() != 0;
    result.refuted = reader.scalar<uint32_t>() != 0;
    result.shared = reader.scalar<uint32_t>() != 0;
    result.trouble = reader.scalar<Trouble>();
    if (result.trouble > Trouble::kTooNew) return std::nullopt;
    return if_whole(reader, std::move(result));
}

std::string encode(const Indexed& indexed) {
    Packer to;
    to.scalar<uint64_t>(indexed.variants.size());
    for (const Indexed::Variant& variant : indexed.variants) {
        pack(to, variant.source);
        to.list(variant.codes);
    }
    to.list(indexed.variables);
    return to.take();
}

std::optional<Indexed> decode_indexed(std::string_view bytes) {
    Reader reader(bytes.data(), bytes.size());
    Indexed indexed;
    const uint64_t count = reader.scalar<uint64_t>();
    if (count > kMostItems) reader.reject();
    for (uint64_t i = 0; i < count && reader.good(); ++i) {
        Source source = read_source(reader);
        indexed.variants.push_back({std::move(source), read_list(reader)});
    }
    indexed.variables = read_list(reader);
    return if_whole(reader, std::move(indexed));
}

bool write_message(int descriptor, Message message, std::string_view bytes) {
    Head head;
    head.message = message;
    head.bytes = bytes.size();
    return send_all(descriptor, &head, sizeof head) && send_all(descriptor, bytes.data(), bytes.size());
}

std::optional<std::string> read_message(int descriptor, Message expected) {
    Head head;
    if (!receive_all(descriptor, &head, sizeof head)) return std::nullopt;
    if (head.magic != Head::kMagic || head.message != expected || head.bytes > kMostBytes)
        return std::nullopt;
    std::string bytes(head.bytes, '\0');
    if (!receive_all(descriptor, bytes.data(), bytes.size())) return std::nullopt;
    return bytes;
}

}  // namespace smt::runtime::jit
