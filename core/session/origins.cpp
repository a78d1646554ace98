// SPDX-License-Identifier: MIT
#include "core/session/origins.h"

#include <algorithm>
#include <map>

namespace hw::core {
namespace {

std::string bracketed(std::string_view text) {
    return "(" + std::string(text) + ")";
}

Origin ofStorage(const TrainingGraph& graph, StorageIndex index, const CallStacks& stacks) {
    const Storage& storage = graph.storages[index];
    const bool ofOp = storage.layer == kNone && storage.creator != kNone;
    return {storage.bytes, index, storage.creator,
            ofOp ? graph.ops[storage.creator].layer : storage.layer,
            stacks.ofStorage(storage.sessionId)};
}

/// What is said of bytes whose line or layer is not known.
std::string otherwise(const TrainingGraph& graph, const Origin& origin, OpIndex op) {
    if (origin.storage == kNone) return origin.op == kNone ? "(not explained)" : "(workspace)";
    std::string name =
        nameWithoutLine(graph, graph.storages[origin.storage].category, op, origin.layer);
    return name.empty() ? "(not known)" : name;
}
std::string withoutLine(const TrainingGraph& graph, const Origin& origin) {
    return otherwise(graph, origin, origin.op);
}

std::string opText(const TrainingGraph& graph, const CallStacks& stacks, const Origin& origin) {
    if (origin.op != kNone) return graph.ops[origin.op].name;
    const SourceFrameRow* op = stacks.operatorOf(origin.stack);
    return op == nullptr ? std::string() : op->function;
}

std::string layerText(const TrainingGraph& graph, const Origin& origin) {
    if (origin.layer == kNone) return otherwise(graph, origin, kNone);
    const std::string& path = graph.layers[origin.layer].path;
    return path.empty() ? "(root)" : path;
}

std::string nameOf(OriginKey key, const SourceFrameRow& frame) {
    switch (key) {
        case OriginKey::File:
            return frame.file.empty() ? frame.function : frame.file;
        case OriginKey::Function:
            if (frame.file.empty()) return frame.function;
            return frame.function + " " + frame.file.substr(frame.file.rfind('/') + 1);
        default:
            return frameText(frame);
    }
}

/// Tells apart what has one name: two files of one name are two.
std::string identityOf(OriginKey key, const SourceFrameRow& frame) {
    return frame.file + "\n" + nameOf(key, frame);
}

class Grouping {
public:
    Grouping(OriginKey key, const TrainingGraph& graph, const CallStacks& stacks)
        : key_(key), graph_(graph), stacks_(stacks) {}

    OriginGroup& groupOf(const Origin& origin) {
        const SourceFrameRow* frame =
            key_ == OriginKey::Layer ? nullptr : stacks_.line(origin.stack);
        const std::string name = frame != nullptr           ? nameOf(key_, *frame)
                                 : key_ == OriginKey::Layer ? layerText(graph_, origin)
                                                            : withoutLine(graph_, origin);
        OriginGroup& group = groups_[frame != nullptr ? identityOf(key_, *frame) : name];
        group.name = name;
        if (group.frame == nullptr) group.frame = frame;
        return group;
    }

    std::vector<OriginGroup> sorted() {
        std::vector<OriginGroup> all;
        for (auto& [identity, group] : groups_) all.push_back(std::move(group));
        std::stable_sort(all.begin(), all.end(), [](const OriginGroup& a, const OriginGroup& b) {
            return a.peak != b.peak ? a.peak > b.peak : a.saved > b.saved;
        });
        return all;
    }

private:
    OriginKey key_;
    const TrainingGraph& graph_;
    const CallStacks& stacks_;
    std::map<std::string, OriginGroup> groups_;
};

class TreeMaker {
public:
    TreeMaker(OriginTree by, const TrainingGraph& graph, const CallStacks& stacks)
        : by_(by), graph_(graph), stacks_(stacks) {}

    void add(OriginNode& root, const Origin& origin) {
        OriginNode* node = &root;
        count(*node, origin);
        if (by_ != OriginTree::Layer) {
            auto frames = stacks_.frames(origin.stack);
            if (by_ == OriginTree::Program)
                std::erase_if(frames, [](const auto* frame) { return frame->framework; });
            for (const SourceFrameRow* frame : frames)
                node = &child(*node, frameText(*frame), frame, origin);
            const bool named = !frames.empty() || stacks_.operatorOf(origin.stack) != nullptr;
            if (!named) node = &child(*node, withoutLine(graph_, origin), nullptr, origin);
        } else {
            node = layerNode(*node, origin);
        }
        const std::string op = opText(graph_, stacks_, origin);
        if (!op.empty() && node->name != op) child(*node, op, nullptr, origin);
    }

    static void sort(OriginNode& node) {
        std::stable_sort(
            node.children.begin(), node.children.end(),
            [](const OriginNode& a, const OriginNode& b) { return a.bytes > b.bytes; });
        for (OriginNode& each : node.children) sort(each);
    }

private:
    void count(OriginNode& node, const Origin& origin) const {
        node.bytes += origin.bytes;
        node.either = node.bytes;
        if (origin.storage != kNone &&
            (node.largest == kNone ||
             graph_.storages[node.largest].bytes < graph_.storages[origin.storage].bytes))
            node.largest = origin.storage;
    }
    OriginNode& child(OriginNode& parent, const std::string& name, const SourceFrameRow* frame,
                      const Origin& origin) const {
        auto at = std::find_if(
            parent.children.begin(), parent.children.end(),
            [&](const OriginNode& each) { return each.frame == frame && each.name == name; });
        if (at == parent.children.end()) {
            OriginNode made;
            made.name = name, made.frame = frame;
            at = parent.children.insert(at, std::move(made));
        }
        count(*at, origin);
        return *at;
    }
    OriginNode* layerNode(OriginNode& root, const Origin& origin) const {
        std::vector<LayerIndex> way;
        for (LayerIndex layer = origin.layer; layer != kNone && way.size() < graph_.layers.size();
             layer = graph_.layers[layer].parent)
            way.push_back(layer);
        OriginNode* node = &root;
        for (auto layer = way.rbegin(); layer != way.rend(); ++layer) {
            const std::string& path = graph_.layers[*layer].path;
            node = &child(*node, path.empty() ? "(root)" : path, nullptr, origin);
        }
        return way.empty() ? &child(root, layerText(graph_, origin), nullptr, origin) : node;
    }

    OriginTree by_;
    const TrainingGraph& graph_;
    const CallStacks& stacks_;
};

// Frames of two sessions are equal by what they say.
bool samePart(const OriginNode& a, const OriginNode& b) {
    if (a.name != b.name || (a.frame == nullptr) != (b.frame == nullptr)) return false;
    return a.frame == nullptr || a.frame->file == b.frame->file;
}

// What no part of a tree accounts for.
Bytes ownBytes(const OriginNode& node) {
    Bytes own = node.bytes;
    for (const OriginNode& child : node.children) own -= child.bytes;
    return own;
}

void putBeside(OriginNode& node, const OriginNode* other) {
    node.other = other ? other->bytes : Bytes(0);
    node.either = std::max(ownBytes(node), other ? ownBytes(*other) : Bytes(0));
    std::vector<bool> taken(other ? other->children.size() : 0);
    for (OriginNode& child : node.children) {
        const OriginNode* same = nullptr;
        for (std::size_t i = 0; i < taken.size() && !same; ++i) {
            if (taken[i] || !samePart(child, other->children[i])) continue;
            taken[i] = true;
            same = &other->children[i];
        }
        putBeside(child, same);
    }
    for (std::size_t i = 0; i < taken.size(); ++i) {
        if (taken[i]) continue;
        OriginNode absent;
        absent.name = other->children[i].name, absent.frame = other->children[i].frame;
        putBeside(absent, &other->children[i]);
        node.children.push_back(std::move(absent));
    }
    for (const OriginNode& child : node.children) node.either += child.either;
    std::stable_sort(node.children.begin(), node.children.end(),
                     [](const OriginNode& a, const OriginNode& b) { return a.either > b.either; });
}

}  // namespace

std::string nameWithoutLine(const TrainingGraph& graph, Category category, OpIndex op,
                            LayerIndex layer) {
    if (category != Category::Unknown) return bracketed(categoryName(category));
    if (op != kNone) return graph.ops[op].name;
    const std::string path = layer == kNone ? std::string() : graph.layers[layer].path;
    return path.starts_with("(") ? path.substr(0, path.find(')') + 1) : std::string();
}

std::vector<Origin> originsAtPeak(const TrainingGraph& graph, const Evaluation& baseline,
                                  const CallStacks& stacks) {
    const Schedule schedule = baselineSchedule(graph);
    const std::size_t at = baseline.peakAction;
    std::vector<Origin> origins;
    for (const StorageIndex storage : residentDuring(graph, schedule, at))
        origins.push_back(ofStorage(graph, storage, stacks));
    if (!schedule[at].runsOp()) return origins;
    const OpIndex op = schedule[at].target;
    if (const Bytes workspace = graph.ops[op].workspace; workspace > Bytes(0))
        origins.push_back(
            {workspace, kNone, op, graph.ops[op].layer, stacks.ofOp(graph.ops[op].sessionId)});
    return origins;
}

std::vector<Origin> originsAtPeak(const RecordedMemory& recorded, const CallStacks& stacks) {
    const auto peak =
        std::max_element(recorded.moments.begin(), recorded.moments.end(),
                         [](const auto& a, const auto& b) { return a.allocated < b.allocated; });
    const auto at = static_cast<std::int32_t>(peak - recorded.moments.begin());
    std::vector<Origin> origins;
    if (peak == recorded.moments.end()) return origins;
    Bytes rest = peak->allocated;
    for (const RecordedMemory::Lifetime& life : recorded.lifetimes) {
        if (life.first > at || at > life.last) continue;
        Origin origin = ofStorage(recorded.graph, life.storage, stacks);
        if (origin.op == kNone)  // in which it was allocated
            origin.op = recorded.moments[static_cast<std::size_t>(life.first)].op;
        rest -= origin.bytes;
        origins.push_back(origin);
    }
    if (rest > Bytes(0)) origins.push_back({rest, kNone, kNone, kNone, CallStacks::kNone});
    return origins;
}

std::vector<Origin> originsSaved(const TrainingGraph& graph, const CallStacks& stacks) {
    std::vector<Origin> origins;
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph.storages.size()); ++s)
        if (graph.storages[s].category == Category::Activation && !graph.storages[s].isConstant())
            origins.push_back(ofStorage(graph, s, stacks));
    return origins;
}

std::vector<OriginGroup> originsBy(OriginKey key, const TrainingGraph& graph,
                                   const CallStacks& stacks, const std::vector<Origin>& atPeak,
                                   const std::vector<Origin>& saved) {
    Grouping grouping(key, graph, stacks);
    for (const Origin& origin : atPeak) {
        OriginGroup& group = grouping.groupOf(origin);
        group.peak += origin.bytes;
        ++group.storages;
        if (origin.bytes <= group.largest) continue;
        group.largest = origin.bytes;
        group.largestOp = opText(graph, stacks, origin);
    }
    for (const Origin& origin : saved) grouping.groupOf(origin).saved += origin.bytes;
    return grouping.sorted();
}

OriginNode originTree(OriginTree by, const TrainingGraph& graph, const CallStacks& stacks,
                      const std::vector<Origin>& origins) {
    OriginNode root;
    TreeMaker maker(by, graph, stacks);
    for (const Origin& origin : origins) maker.add(root, origin);
    TreeMaker::sort(root);
    return root;
}

OriginNode besideOther(OriginNode tree, const OriginNode& other) {
    putBeside(tree, &other);
    return tree;
}

}  // namespace hw::core
