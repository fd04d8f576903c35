#include "runtime/server/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "runtime/journal/fault_record.h"
#include "runtime/server/fatal.h"
#include "runtime/server/image_opener.h"
#include "runtime/server/log.h"
#include "runtime/server/memory/block_store.h"
#include "runtime/server/memory/tenant_ranges.h"
#include "runtime/server/session.h"
#include "runtime/server/swapper.h"
#include "runtime/server/unpinning.h"
#include "runtime/settings/read.h"

namespace smt::runtime::server {

namespace {

constexpr std::chrono::seconds kLongestDump{5};  // measured: 1 s with a full GPU
constexpr std::chrono::seconds kStandbyComes{10};

// While kernels are measured, results are written to the file at short intervals, so that `smt profile` can
// show the progress. Else they are written when a tenant leaves.
std::chrono::milliseconds between_writes() {
    return std::chrono::seconds(settings::c_text_of(settings::Id::kProfile) ? 1 : 0);
}

// By swap_host and swap_folder in SMT_LIMITS. By default the host's part is what pinned memory may take now.
std::shared_ptr<BlockStore> make_block_store(std::shared_ptr<SpareBlocks> blocks, BlockStore::Note note) {
    const std::string folder(settings::text_of(settings::Id::kSwapFolder));
    std::shared_ptr<SwapFile> file;
    std::string problem;
    if (!folder.empty()) file = SwapFile::open(folder, HostBlock::kLargest, &problem);
    if (!problem.empty()) note("memory of tenants does not go to files: " + problem);
    const uint64_t otherwise = file ? HostBlock::room().pinned : ~uint64_t{0},
                   most = settings::number_of(settings::Id::kSwapHost, otherwise);
    return std::make_shared<BlockStore>(std::move(blocks), std::move(file), most, std::move(note));
}

}  // namespace

Server::Server(device::Device& device, journal::Writer& journal, DevicePrintf& device_printf,
               std::unique_ptr<schedule::Policy> policy, const dispatch::Settings& settings,
               std::unique_ptr<jit::Opener> opener)
    : device_(device),
      journal_(journal),
      device_printf_(device_printf),
      dispatcher_(device, journal, std::move(policy), settings),
      spare_images_(settings::number_of(settings::Id::kSpareCode)),
      started_(journal::now_ns()),
      compiler_(jit::read_settings(jit::own_folder()), [this](const std::string& line) { note(line); }),
      opener_(opener ? std::move(opener)
                     : make_opener(device, [this](const std::string& line) { note(line); })),
      profiles_(
          profiles::store_path(), profiles::read_facts(device),
          [this](const std::string& line) { note(line); }, between_writes()) {
    device_.attach(journal_);
    measuring_ = Measuring::wanted(device_, journal_.path(), [this](const std::string& line) { note(line); });
    unpinning_ = std::make_unique<Unpinning>(*this);
    block_store_ = make_block_store(unpinning_->blocks(), [this](const std::string& line) { note(line); });
    swapper_ = Swapper::wanted(*this);
    TenantRanges::trim_also([this] { unload(device_.driver(), spare_images_.take_all()); });
}

Server::~Server() { TenantRanges::trim_also(nullptr); }

void Server::note(const std::string& line, const Session* of) {
    {
        std::lock_guard lock(lines_mutex_);
        if (!lines_.shown(of ? of->id() : 0, line, journal::now_ns())) return;
    }
    write(line, of);
}

void Server::note_left_out() {
    std::vector<Repeats::Left> all;
    {
        std::lock_guard lock(lines_mutex_);
        all = lines_.over(journal::now_ns());
    }
    for (const Repeats::Left& left : all)
        write(fmt::format("{} more lines like this one in {} s were left out: {}", left.lines,
                          Repeats::kWindow / 1'000'000'000, left.last),
              nullptr);
}

void Server::write(const std::string& line, const Session* of) {
    journal::Entry entry;
    entry.kind = journal::Kind::kNote;
    entry.text = journal_.line(line);
    device_.write(journal_, entry, of);
    log_line(line);
}

void Server::add(Session& session) {
    if (session.dispatched().limited()) standstill_.add(session);
    std::lock_guard lock(mutex_);
    if (std::any_of(sessions_.begin(), sessions_.end(), [&](const Session* each) {
            return each->tenant() == session.tenant() && each->gate().closed(LaneGate::kSuspended) &&
                   !each->closing();
        }))
        session.gate().close(LaneGate::kSuspended);
    quarantine_.arrives(session);
    sessions_.push_back(&session);
    served_.fetch_add(1);
    if (fatal() != CUDA_SUCCESS) session.poison(fatal(), fault_told(fatal(), false));
}

void Server::remove(Session& session) {
    standstill_.remove(session);
    std::lock_guard lock(mutex_);
    if (std::erase(sessions_, &session)) launches_ += session.launches();
}

void Server::stop_sessions(const std::string& why) {
    std::lock_guard lock(mutex_);
    for (Session* session : sessions_)
        if (!session->left()) session->stop(why);
}

std::vector<Session*> Server::borrow_if(const std::function<bool(const Session&)>& wanted) {
    std::lock_guard lock(mutex_);
    std::vector<Session*> found;
    for (Session* session : sessions_) {
        if (wanted(*session) && !session->closing() && !session->held() && session->has_memory())
            found.push_back(session);
    }
    borrowed_.insert(borrowed_.end(), found.begin(), found.end());
    return found;
}

std::vector<Session*> Server::borrow(const std::string& tenant) {
    return borrow_if([&](const Session& each) { return each.tenant() == tenant; });
}

std::vector<Session*> Server::borrow(uint32_t session) {
    return borrow_if([&](const Session& each) { return each.id() == session; });
}

std::vector<Session*> Server::borrow_all() {
    return borrow_if([](const Session&) { return true; });
}

void Server::give_back(const std::vector<Session*>& sessions) {
    {
        std::lock_guard lock(mutex_);
        for (const Session* session : sessions)
            borrowed_.erase(std::find(borrowed_.begin(), borrowed_.end(), session));
    }
    returned_.notify_all();
}

void Server::await_return(const Session& session) {
    std::unique_lock lock(mutex_);
    returned_.wait(
        lock, [&] { return std::find(borrowed_.begin(), borrowed_.end(), &session) == borrowed_.end(); });
}

void Server::close_gates(const std::string& tenant) {
    std::lock_guard lock(mutex_);
    for (Session* session : sessions_)
        if (session->tenant() == tenant) session->gate().close(LaneGate::kSuspended);
}

void Server::open_gates(const std::string& tenant) {
    std::lock_guard lock(mutex_);
    for (Session* session : sessions_)
        if (session->tenant() == tenant) session->gate().open(LaneGate::kSuspended);
}

void Server::keep(std::unique_ptr<Session> session) {
    standstill_.remove(*session);
    std::lock_guard lock(mutex_);
    if (std::erase(sessions_, session.get())) launches_ += session->launches();
    kept_.push_back(std::move(session));
}

bool Server::keeps() const {
    std::lock_guard lock(mutex_);
    return !kept_.empty();
}

void Server::poison(CUresult status) {
    std::call_once(poisoned_, [&] {
        const auto report = device_.fault();  // may wait for the device
        std::vector<Suspect> at_fault;
        const bool hold = takes_over();
        {
            std::lock_guard lock(mutex_);
            at_fault = suspects();
            fault_ = describe_fault(status, report, at_fault);
            end_sessions(status, at_fault, hold);
        }
        note_fault(at_fault, hold);
        if (!hold) return;
        holds_.store(true);
        begin_takeover_();
    });
}

// The caller holds mutex_. `at_fault`: of each session, in order.
void Server::end_sessions(CUresult status, const std::vector<Suspect>& at_fault, bool hold) {
    fatal_since_.store(journal::now_ns());
    fatal_.store(status);
    journal_.end(journal::Ending::kFault);
    for (size_t i = 0; i < sessions_.size(); ++i) {
        Session& session = *sessions_[i];
        bool own = !at_fault[i].cleared();
        for (size_t j = 0; j < sessions_.size(); ++j)
            own &= at_fault[j].cleared() || sessions_[j]->user() == session.user();
        const std::string why =
            fault_told(status, own) + (at_fault[i].cleared() ? ". It was no kernel of this program" : "");
        if (session.ended_with() != CUDA_SUCCESS) continue;
        if (hold)
            session.hold(why);
        else if (context_lives())
            session.end_work(status, why);
        else
            session.poison(status, why);
    }
}

std::string Server::fault_told(CUresult status, bool own) const {
    if (!users_ || own) return fault_;
    return fmt::format(
        "error {}: a fault has ended the context that the users of this server share; it may have "
        "been another user's, and the administrator's log has it",
        static_cast<int>(status));
}

void Server::give_up_context(uint32_t session, const std::string& why) {
    std::call_once(poisoned_, [&] {
        const bool hold = takes_over();
        std::vector<Suspect> at_fault;
        {
            std::lock_guard lock(mutex_);
            for (const Session* each : sessions_) {
                at_fault.push_back({each->called(), 0, 0, {}, each->id() == session, each->tenant()});
            }
            fault_ = why;
            lives_.store(true);
            end_sessions(CUDA_ERROR_LAUNCH_TIMEOUT, at_fault, hold);
        }
        note_fault(at_fault, hold);
        if (!hold) return;
        holds_.store(true);
        begin_takeover_();
    });
}

std::string Server::why_no_kernel_limit() const {
    if (device_.properties().keeps_faults_apart || expects_takeover() || one_tenant_) return {};
    return "the server runs without SMT_KEEPER=takeover, so the end of a kernel that does not stop would be "
           "the end "
           "of all programs. Set it and start the server again (`smt server stop`), let the program have a "
           "server "
           "of its own (`smt run --isolation strict`), or set no limit (SMT_KERNEL_LIMIT, kernel in "
           "SMT_LIMITS)";
}

std::string Server::why_no_quarantine() const {
    if (device_.properties().keeps_faults_apart || expects_takeover() || one_tenant_) return {};
    return "the server runs without SMT_KEEPER=takeover, so a fault is the end of all programs, also of "
           "those "
           "in quarantine. Set it and start the server again (`smt server stop`), or let the program have a "
           "server of its own (`smt run --isolation strict`)";
}

void Server::each_session(const std::function<void(Session&)>& call) const {
    std::lock_guard lock(mutex_);
    for (Session* session : sessions_)
        if (!session->left()) call(*session);
}

void Server::note_fault(const std::vector<Suspect>& at_fault, bool held) {
    const std::string cleared = report_cleared(at_fault);
    note(fmt::format("{} context is {}: {}.{}{} {}", one_tenant_ ? "the tenant's own" : "the shared",
                     context_lives() ? "given up" : "lost", fault_, cleared.empty() ? "" : " ",
                     cleared.empty() ? "" : cleared + ".",
                     held
                         ? "Programs with nothing under way, or with launches that can be executed again, go "
                           "on in another process"
                         : "Every session gets this error; the next program starts a fresh server when "
                           "this one has left"));
    if (!fault_file_.empty()) journal::write_fault(fault_file_, fault_);
    const auto suspect = [](const Suspect& each) { return !each.cleared(); };
    for (const Suspect& each : at_fault)
        if (suspect(each)) suspected_.insert(each.name);
    knows_culprit_ = std::count_if(at_fault.begin(), at_fault.end(), suspect) == 1;
    if (!expects_takeover()) return;
    quarantine_.fault(suspected_);
    // The watchdog has counted a kernel for which the context is given up.
    if (knows_culprit_ && !context_lives()) offences_.add(*suspected_.begin(), journal::now_ns());
    if (!held) write_record();  // for the next server
}

void Server::save_record(protocol::StateWriter& out) const {
    offences_.save(out);
    quarantine_.save(out);
}

void Server::restore_record(protocol::Reader& in) {
    offences_.restore(in, journal::now_ns());
    quarantine_.restore(in);
}

void Server::write_record() const {
    if (record_file_.empty()) return;
    protocol::StateWriter out;
    save_record(out);
    const std::string bytes = out.all();
    std::ofstream(record_file_, std::ios::binary) << bytes;
}

void Server::keep_record_in(const std::string& file) {
    record_file_ = file;
    std::ifstream kept(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(kept), {}};
    protocol::Reader in(bytes.data(), bytes.size());
    if (!bytes.empty()) restore_record(in);
    std::error_code none;
    std::filesystem::remove(file, none);  // the next fault writes what is left of it
}

void Server::await_standby(const std::string& tenant) const {
    const auto until = std::chrono::steady_clock::now() + kStandbyComes;
    while (quarantine_.names(tenant) && standby_comes() && !takes_over() && fatal() == CUDA_SUCCESS &&
           std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

void Server::blame(const std::string& tenant, uint64_t others) {
    std::lock_guard lock(blame_mutex_);
    blamed_ = tenant;
    others_ = others;
    judge();
}

void Server::cleared() {
    std::lock_guard lock(blame_mutex_);
    ++cleared_;
    judge();
}

void Server::judge() {
    if (blamed_.empty() || cleared_ < others_) return;
    offences_.add(blamed_, journal::now_ns());
    quarantine_.blame(blamed_);
    note(fmt::format("the fault was tenant {}'s: what others had under way was executed again, and is over",
                     blamed_));
    blamed_.clear();
}

void Server::expect_takeover(std::function<bool()> ready, std::function<bool()> comes,
                             std::function<void()> begin) {
    ready_ = std::move(ready);
    comes_ = std::move(comes);
    begin_takeover_ = std::move(begin);
}

std::vector<Session*> Server::held_sessions() {
    std::vector<Session*> held;
    std::lock_guard lock(mutex_);
    for (Session* session : sessions_)
        if (session->held()) held.push_back(session);
    std::stable_sort(held.begin(), held.end(),
                     [](const Session* a, const Session* b) { return a->priority() > b->priority(); });
    return held;
}

CUresult Server::fault_to_come() const {
    if (!device_.fault_begun()) return CUDA_SUCCESS;
    const auto until = std::chrono::steady_clock::now() + kLongestDump;
    while (std::chrono::steady_clock::now() < until) {
        const CUresult status = device_.driver().cuStreamQuery(device_.errands());
        if (is_fatal(status)) return status;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return CUDA_SUCCESS;
}

std::vector<Suspect> Server::suspects() const {
    const journal::Reader names(journal_.path());
    std::vector<Suspect> all;
    for (const Session* session : sessions_) {
        const UnderWay under_way = session->begun();
        Suspect suspect{session->called(), under_way.operations, under_way.launches, {},
                        under_way.more,    session->tenant()};
        for (uint32_t kernel : under_way.kernels) suspect.kernels.push_back(names.name(kernel));
        all.push_back(std::move(suspect));
    }
    return all;
}

// The faulting kernel, by the device's report. Without a report, the tenants with launches that may be
// incomplete: one of them caused the fault. `suspects` has the sessions' order; those that it was not are
// cleared.
std::string Server::describe_fault(CUresult status,
                                   const std::variant<image::FaultSite, image::Problem>& report,
                                   std::vector<Suspect>& suspects) const {
    const char* name = nullptr;
    if (device_.driver().cuGetErrorName) device_.driver().cuGetErrorName(status, &name);
    const std::string error = fmt::format("{} ({})", name ? name : "error", static_cast<int>(status));
    const auto* site = std::get_if<image::FaultSite>(&report);
    if (!site) return report_fault(error, std::get<image::Problem>(report).text, suspects);
    std::string described = fmt::format("{} in kernel {} of a program that has left{}", error, site->kernel,
                                        image::describe(*site));
    for (size_t i = 0; i < sessions_.size(); ++i) {
        const std::string kernel = sessions_[i]->kernel_at(*site);
        if (kernel.empty()) {
            suspects[i] = {suspects[i].tenant, 0, 0, {}, false, suspects[i].name};
            continue;
        }
        suspects[i].more = true;
        described = fmt::format("{} in kernel {} of {}{}", error, kernel, sessions_[i]->called(),
                                image::describe(*site));
    }
    return described;
}

void Server::tick() {
    note_left_out();
    addresses_.lock_later();
    if (const std::string news = device_.physical_memory().news(); !news.empty()) note(news);
    const Standstill::Calls calls(standstill_);
    if (fatal() == CUDA_SUCCESS) {
        device_.physical_memory().trim_unused();
        CUresult status = device_.driver().cuStreamQuery(device_.errands());
        if (is_fatal(status)) poison(status);
        sharing_.sweep();
    }
    if (fatal() == CUDA_SUCCESS) watchdog_.look();
    std::lock_guard lock(mutex_);
    for (Session* session : sessions_) {
        if (session->left()) continue;
        session->tick();
        if (!expects_takeover() || fatal() != CUDA_SUCCESS) continue;
        session->streams().note_what_is_over();
        session->note_rest();
    }
}

uint32_t Server::stuck() const {
    std::lock_guard lock(mutex_);
    return static_cast<uint32_t>(std::count_if(sessions_.begin(), sessions_.end(),
                                               [](const Session* session) { return session->stuck(); }));
}

}  // namespace smt::runtime::server
