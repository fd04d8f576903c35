// The fields of each struct in a recording: archive(name, member, default). Only record.cpp includes this.
//
// A new member of one of the structs breaks the build of its list here until the list has it.
#pragma once

#include "runtime/schedule/policy.h"

namespace smt::runtime::schedule {

template <class Archive, class T>
void fields(Archive& archive, T& value, const Resources& standard) {
    auto& [threads, registers, shared_bytes, warps, ctas] = value;
    archive("threads", threads, standard.threads);
    archive("registers", registers, standard.registers);
    archive("shared_bytes", shared_bytes, standard.shared_bytes);
    archive("warps", warps, standard.warps);
    archive("ctas", ctas, standard.ctas);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const models::Memory& standard) {
    auto& [latency, requests_per_cycle, contention, coalesced_requests, uncoalesced_requests] = value;
    archive("latency", latency, standard.latency);
    archive("requests_per_cycle", requests_per_cycle, standard.requests_per_cycle);
    archive("contention", contention, standard.contention);
    archive("coalesced_requests", coalesced_requests, standard.coalesced_requests);
    archive("uncoalesced_requests", uncoalesced_requests, standard.uncoalesced_requests);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const models::Multiprocessor& standard) {
    auto& [warp_schedulers, memory] = value;
    archive("warp_schedulers", warp_schedulers, standard.warp_schedulers);
    archive("memory", memory, standard.memory);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const models::Configuration& standard) {
    auto& [ctas_per_sm, nanoseconds] = value;
    archive("ctas_per_sm", ctas_per_sm, standard.ctas_per_sm);
    archive("nanoseconds", nanoseconds, standard.nanoseconds);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const models::Utilization& standard) {
    auto& [pur, mur] = value;
    archive("pur", pur, standard.pur);
    archive("mur", mur, standard.mur);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const models::Footprint& standard) {
    auto& [sms, ctas_per_sm, throughput] = value;
    archive("sms", sms, standard.sms);
    archive("ctas_per_sm", ctas_per_sm, standard.ctas_per_sm);
    archive("throughput", throughput, standard.throughput);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const models::Waits& standard) {
    auto& [interval, latency, requests, pipes] = value;
    archive("interval", interval, standard.interval);
    archive("latency", latency, standard.latency);
    archive("requests", requests, standard.requests);
    archive("pipes", pipes, standard.pipes);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Mix& standard) {
    auto& [utilization, memory_ratio, uncoalesced_ratio, instructions_per_block, waits] = value;
    archive("utilization", utilization, standard.utilization);
    archive("memory_ratio", memory_ratio, standard.memory_ratio);
    archive("uncoalesced_ratio", uncoalesced_ratio, standard.uncoalesced_ratio);
    archive("instructions_per_block", instructions_per_block, standard.instructions_per_block);
    archive("waits", waits, standard.waits);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Beside& standard) {
    auto& [other, ctas_per_sm, other_ctas_per_sm, rate, learnt] = value;
    archive("other", other, standard.other);
    archive("ctas_per_sm", ctas_per_sm, standard.ctas_per_sm);
    archive("other_ctas_per_sm", other_ctas_per_sm, standard.other_ctas_per_sm);
    archive("rate", rate, standard.rate);
    archive("learnt", learnt, standard.learnt);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Timed& standard) {
    auto& [sms, ctas_per_sm] = value;
    archive("sms", sms, standard.sms);
    archive("ctas_per_sm", ctas_per_sm, standard.ctas_per_sm);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Profile& standard) {
    auto& [identity, blocks, configurations, by_ctas, preemption, slice_overhead, mix, footprint,
           footprint_learnt, timed, beside] = value;
    archive("identity", identity, standard.identity);
    archive("blocks", blocks, standard.blocks);
    archive("configurations", configurations, standard.configurations);
    archive("by_ctas", by_ctas, standard.by_ctas);
    archive("preemption", preemption, standard.preemption);
    archive("slice_overhead", slice_overhead, standard.slice_overhead);
    archive("mix", mix, standard.mix);
    archive("footprint", footprint, standard.footprint);
    archive("footprint_learnt", footprint_learnt, standard.footprint_learnt);
    archive("timed", timed, standard.timed);
    archive("beside", beside, standard.beside);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Kernel& standard) {
    auto& [id, tenant, session, priority, managed, has_door, state, blocks, blocks_done, ctas_per_sm,
           usual_ctas, own_sms, multiprocessors, ahead, since, launch, last_taken, weight, cta, predicted,
           remaining, preemption, profile, received, guessed, receiving, correction, corrections] = value;
    archive("id", id, standard.id);
    archive("tenant", tenant, standard.tenant);
    archive("session", session, standard.session);
    archive("priority", priority, standard.priority);
    archive("managed", managed, standard.managed);
    archive("has_door", has_door, standard.has_door);
    archive("state", state, standard.state);
    archive("blocks", blocks, standard.blocks);
    archive("blocks_done", blocks_done, standard.blocks_done);
    archive("ctas_per_sm", ctas_per_sm, standard.ctas_per_sm);
    archive("usual_ctas", usual_ctas, standard.usual_ctas);
    archive("own_sms", own_sms, standard.own_sms);
    archive("multiprocessors", multiprocessors, standard.multiprocessors);
    archive("ahead", ahead, standard.ahead);
    archive("since", since, standard.since);
    archive("launch", launch, standard.launch);
    archive("last_taken", last_taken, standard.last_taken);
    archive("weight", weight, standard.weight);
    archive("cta", cta, standard.cta);
    archive("predicted", predicted, standard.predicted);
    archive("remaining", remaining, standard.remaining);
    archive("preemption", preemption, standard.preemption);
    archive("profile", profile, standard.profile);
    archive("received", received, standard.received);
    archive("guessed", guessed, standard.guessed);
    archive("receiving", receiving, standard.receiving);
    archive("correction", correction, standard.correction);
    archive("corrections", corrections, standard.corrections);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Device& standard) {
    auto& [multiprocessors, sm, model] = value;
    archive("multiprocessors", multiprocessors, standard.multiprocessors);
    archive("sm", sm, standard.sm);
    archive("model", model, standard.model);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Urgent& standard) {
    auto& [priority, since] = value;
    archive("priority", priority, standard.priority);
    archive("since", since, standard.since);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Target& standard) {
    auto& [p99, slowdown] = value;
    archive("p99", p99, standard.p99);
    archive("slowdown", slowdown, standard.slowdown);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Pause& standard) {
    auto& [from, to, launches, over] = value;
    archive("from", from, standard.from);
    archive("to", to, standard.to);
    archive("launches", launches, standard.launches);
    archive("over", over, standard.over);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Activity& standard) {
    auto& [works, began, ended, pauses, forgotten] = value;
    archive("works", works, standard.works);
    archive("began", began, standard.began);
    archive("ended", ended, standard.ended);
    archive("pauses", pauses, standard.pauses);
    archive("forgotten", forgotten, standard.forgotten);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Service& standard) {
    auto& [session, tenant, target, launches, over, activity] = value;
    archive("session", session, standard.session);
    archive("tenant", tenant, standard.tenant);
    archive("target", target, standard.target);
    archive("launches", launches, standard.launches);
    archive("over", over, standard.over);
    archive("activity", activity, standard.activity);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Snapshot& standard) {
    auto& [device, kernels, urgent, services] = value;
    archive("device", device, standard.device);
    archive("kernels", kernels, standard.kernels);
    archive("urgent", urgent, standard.urgent);
    archive("services", services, standard.services);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Assignment& standard) {
    auto& [kernel, action, reason, quota, slice] = value;
    archive("kernel", kernel, standard.kernel);
    archive("action", action, standard.action);
    archive("reason", reason, standard.reason);
    archive("quota", quota, standard.quota);
    archive("slice", slice, standard.slice);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Confinement& standard) {
    auto& [kernel, multiprocessors, longer_than, reason, stoppable, ahead] = value;
    archive("kernel", kernel, standard.kernel);
    archive("multiprocessors", multiprocessors, standard.multiprocessors);
    archive("longer_than", longer_than, standard.longer_than);
    archive("reason", reason, standard.reason);
    archive("stoppable", stoppable, standard.stoppable);
    archive("ahead", ahead, standard.ahead);
}

template <class Archive, class T>
void fields(Archive& archive, T& value, const Decision& standard) {
    auto& [assignments, confinements, attained, again] = value;
    archive("assignments", assignments, standard.assignments);
    archive("confinements", confinements, standard.confinements);
    archive("again", again, standard.again);
}

}  // namespace smt::runtime::schedule
