// Writing and reading of records (record.h), for the fields that record_fields.h lists.
#include "runtime/schedule/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "runtime/schedule/record_fields.h"

namespace smt::runtime::schedule {

namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 2, kWithoutRequests = 1;
constexpr int kMostMultiprocessors = 4096;  // bounds the tables of policies; ten times any device

struct Unreadable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] void refuse(const char* why) { throw Unreadable(why); }

// ---- Values

template <class Enumeration>
constexpr const char* kNames[] = {nullptr};
template <>
constexpr const char* kNames<Kernel::State>[] = {"running", "stopping", "waiting"};
template <>
constexpr const char* kNames<Assignment::Action>[] = {"run", "wait"};

template <class T>
concept MayBeNone = requires(const T& value) { value ? &*value : nullptr; };
template <class T>
concept List = requires(T& value) { value.push_back(value.front()); };
template <class T>
concept Array = requires { std::tuple_size<T>::value; };
template <class T>
concept Nanoseconds = std::is_same_v<T, std::chrono::duration<typename T::rep, std::nano>>;

template <class T>
void put(std::string& to, const T& value);

// Writes text directly: a tree of JSON values costs five times as much, while launches wait.
class ToText {
public:
    explicit ToText(std::string& to) : to_(to) { to_ += '{'; }
    template <class T>
    void operator()(std::string_view name, const T& value, const T& standard) {
        if (is_standard(value, standard)) return;
        begin(name);
        put(to_, value);
    }
    void end() { to_ += '}'; }

private:
    // Apart from the template, which is compiled for each type of field.
    void begin(std::string_view name) {
        if (to_.back() != '{') to_ += ',';
        to_ += '"';
        to_ += name;
        to_ += "\":";
    }
    template <class T>
    static bool is_standard(const T& value, const T& standard) {
        if constexpr (List<T>)
            return value.empty();  // the default of every vector member is empty
        else if constexpr (MayBeNone<T>)
            return !value;
        else if constexpr (requires { value == standard; })
            return value == standard;
        else
            return false;
    }

    std::string& to_;
};

void put_text(std::string& to, std::string_view text) {
    const bool plain =
        std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 127 && c != '"' && c != '\\'; });
    if (plain)
        ((to += '"') += text) += '"';
    else
        to += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class T>
void put(std::string& to, const T& value) {
    if constexpr (std::is_enum_v<T>) {
        put_text(to, kNames<T>[static_cast<size_t>(value)]);
    } else if constexpr (std::is_same_v<T, bool>) {
        to += value ? "true" : "false";
    } else if constexpr (std::is_floating_point_v<T>) {
        std::isfinite(value) ? void(fmt::format_to(std::back_inserter(to), "{}", value)) : void(to += "null");
    } else if constexpr (std::is_integral_v<T>) {
        to += fmt::format_int(value).c_str();
    } else if constexpr (std::is_same_v<T, std::string>) {
        put_text(to, value);
    } else if constexpr (std::is_same_v<T, TimePoint>) {
        put(to, value.time_since_epoch());
    } else if constexpr (Nanoseconds<T>) {
        put(to, value.count());
    } else if constexpr (MayBeNone<T>) {
        put(to, *value);
    } else if constexpr (List<T> || Array<T>) {
        to += '[';
        for (const auto& each : value) {
            if (&each != value.data()) to += ',';
            put(to, each);
        }
        to += ']';
    } else {
        ToText archive(to);
        fields(archive, value);
        archive.end();
    }
}

template <class T>
void take(const Json& from, T& value);

// Takes each member that is present and rejects unknown ones: a misspelt name would silently become a
// default.
class FromJson {
public:
    explicit FromJson(const Json& from) : from_(from) {
        if (!from.is_object()) refuse("it is no object");
    }
    template <class T>
    void operator()(std::string_view name, T& value, const T&) {
        const Json* const found = member(name);
        if (!found) return;
        try {
            take(*found, value);
        } catch (const Unreadable& problem) {
            refuse_member(name, problem);
        }
    }
    void end() const {
        if (taken_ != from_.size()) refuse("there is an unknown field in it");
    }

private:
    const Json* member(std::string_view name) {
        const auto found = from_.find(std::string(name));
        if (found == from_.end()) return nullptr;
        ++taken_;
        return &*found;
    }
    [[noreturn]] static void refuse_member(std::string_view name, const Unreadable& problem) {
        throw Unreadable(std::string(name) + ": " + problem.what());
    }

    const Json& from_;
    size_t taken_ = 0;
};

template <class T>
void take_number(const Json& from, T& value) {
    if (!from.is_number_integer()) refuse("it is no whole number");
    const bool fits = from.is_number_unsigned() ? std::in_range<T>(from.get<uint64_t>())
                                                : std::in_range<T>(from.get<int64_t>());
    if (!fits) refuse("it is out of range");
    value = from.get<T>();
}

template <class T>
void take(const Json& from, T& value) {
    if constexpr (std::is_enum_v<T>) {
        for (size_t i = 0; i < std::size(kNames<T>); ++i) {
            if (from == kNames<T>[i]) return void(value = static_cast<T>(i));
        }
        refuse("it is no word that stands there");
    } else if constexpr (std::is_same_v<T, bool>) {
        if (!from.is_boolean()) refuse("it is neither true nor false");
        value = from.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
        take_number(from, value);
    } else if constexpr (std::is_floating_point_v<T>) {
        if (!from.is_number() && !from.is_null()) refuse("it is no number");
        value = from.is_null() ? std::numeric_limits<T>::quiet_NaN() : from.get<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
        if (!from.is_string()) refuse("it is no text");
        value = from.get<std::string>();
    } else if constexpr (std::is_same_v<T, TimePoint>) {
        Duration since{};
        take(from, since);
        value = TimePoint(since);
    } else if constexpr (Nanoseconds<T>) {
        typename T::rep count = 0;
        take_number(from, count);
        value = T(count);
    } else if constexpr (MayBeNone<T>) {
        std::remove_cvref_t<decltype(*value)> made{};
        take(from, made);
        if constexpr (requires { value.emplace(made); })
            value.emplace(std::move(made));
        else
            value = std::make_shared<std::remove_cvref_t<decltype(*value)>>(std::move(made));
    } else if constexpr (Array<T>) {
        if (!from.is_array() || from.size() != value.size()) refuse("it is no list of that length");
        for (size_t i = 0; i < value.size(); ++i) take(from[i], value[i]);
    } else if constexpr (List<T>) {
        if (!from.is_array()) refuse("it is no list");
        value.clear();
        for (const Json& each : from) {
            typename T::value_type made{};
            take(each, made);
            value.push_back(std::move(made));
        }
    } else {
        FromJson archive(from);
        fields(archive, value);
        archive.end();
    }
}

// The invariants that policies rely on.
void check(const Snapshot& snapshot) {
    const auto sane = [](int multiprocessors) {
        return multiprocessors >= 0 && multiprocessors <= kMostMultiprocessors;
    };
    if (!sane(snapshot.device.multiprocessors))
        throw Unreadable("there is no device with so many multiprocessors");
    for (const Kernel& kernel : snapshot.kernels) {
        const bool good = sane(kernel.multiprocessors) && kernel.ctas_per_sm >= 0 &&
                          std::isfinite(kernel.weight) && kernel.weight > 0;
        if (!good) throw Unreadable("there is no kernel with such numbers");
    }
}

}  // namespace

std::string policy_line(std::string_view policy) {
    std::string line = fmt::format("{{\"recording\":{},\"policy\":", kVersion);
    put_text(line, policy);
    return line + "}";
}

std::string record_line(const Snapshot& snapshot, TimePoint now, const Decision& decision) {
    std::string line = "{\"now\":";
    put(line, now);
    line += ",\"snapshot\":";
    put(line, snapshot);
    line += ",\"decision\":";
    put(line, decision);
    return line + "}";
}

bool read_line(std::string_view line, Record& record) {
    const Json from = Json::parse(line, nullptr, false);
    if (from.is_discarded()) throw Unreadable("it is no JSON, or cut");
    if (!from.is_object()) throw Unreadable("it is no object");
    FromJson archive(from);
    if (from.contains("recording")) {
        int version = 0;
        std::string policy;
        archive("recording", version, 0);
        archive("policy", policy, {});
        archive.end();
        if (version != kVersion && version != kWithoutRequests)
            throw Unreadable("another version of smt has written it");
        record.policy = std::move(policy);
        record.requests = version != kWithoutRequests;
        return false;
    }
    if (!from.contains("now") || !from.contains("snapshot") || !from.contains("decision"))
        throw Unreadable("now, snapshot and decision should be in it");
    record.snapshot = {};
    record.decision = {};
    archive("now", record.now, {});
    archive("snapshot", record.snapshot, {});
    archive("decision", record.decision, {});
    archive.end();
    check(record.snapshot);
    return true;
}

// Policies identify a profile by its address, so equal profiles become one object, as in the server.
static void unite_profiles(Snapshot& snapshot, std::map<std::string, std::shared_ptr<const Profile>>& known) {
    for (Kernel& kernel : snapshot.kernels) {
        if (!kernel.profile) continue;
        std::string text;
        put(text, *kernel.profile);
        kernel.profile = known.try_emplace(std::move(text), kernel.profile).first->second;
    }
}

void read_recording(const std::string& path, const std::function<void(const Record&)>& visit) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path + ": " + std::strerror(errno));
    Record record;
    std::map<std::string, std::shared_ptr<const Profile>> profiles;
    std::string line;
    uint64_t number = 0;
    while (std::getline(file, line)) {
        bool decided = false;
        ++number;
        try {
            decided = read_line(line, record);
            if (number == 1 && decided) throw Unreadable("the first line should say whose recording this is");
        } catch (const Unreadable& problem) {
            throw std::runtime_error(path + ":" + std::to_string(number) + ": " + problem.what());
        }
        if (!decided) continue;
        unite_profiles(record.snapshot, profiles);
        visit(record);
    }
    if (file.bad()) throw std::runtime_error("cannot read " + path + ": " + std::strerror(errno));
    if (number == 0) throw std::runtime_error(path + " is empty: no recording");
}

}  // namespace smt::runtime::schedule
