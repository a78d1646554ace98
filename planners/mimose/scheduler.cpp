// SPDX-License-Identifier: MIT
#include "planners/mimose/scheduler.h"

#include <algorithm>
#include <numeric>

namespace hw::planners {
namespace {

using namespace hw::core;

struct Bucket {
    Bytes largest;
    std::vector<int> layers;  // latest first: taken from the back
};

std::vector<Bucket> buckets(const std::vector<Bytes>& layers) {
    std::vector<int> order(layers.size());
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](int i) { return layers[i] <= Bytes(0); });
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return layers[a] > layers[b]; });
    std::vector<Bucket> made;  // largest first
    for (const int i : order) {
        if (made.empty() || layers[i].count() * 10 < made.back().largest.count() * 9)
            made.push_back({layers[i], {}});
        made.back().layers.push_back(i);
    }
    for (Bucket& bucket : made) std::sort(bucket.layers.rbegin(), bucket.layers.rend());
    return made;
}

}  // namespace

LayerChoice chooseLayers(const std::vector<Bytes>& layers, Bytes excess) {
    std::vector<Bucket> open = buckets(layers);
    LayerChoice choice;
    while (excess > Bytes(0) && !open.empty()) {
        auto bucket = open.begin();
        while (std::next(bucket) != open.end() &&
               layers[std::next(bucket)->layers.back()] >= excess)
            ++bucket;
        const int layer = bucket->layers.back();
        bucket->layers.pop_back();
        if (bucket->layers.empty()) open.erase(bucket);
        choice.push_back(layer);
        excess -= layers[layer];
    }
    std::sort(choice.begin(), choice.end());
    return choice;
}

Bytes layerPeak(const std::vector<Bytes>& layers, Bytes rest, const LayerChoice& choice) {
    Bytes kept = rest, peak;
    auto next = choice.begin();
    for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
        const bool dropped = next != choice.end() && *next == i;
        peak = std::max(peak, kept + layers[i]);
        if (dropped)
            ++next;
        else
            kept += layers[i];
    }
    return std::max(peak, kept);
}

std::optional<LayerChoice> layersWithin(const std::vector<Bytes>& layers, Bytes rest,
                                        Bytes budget) {
    Bytes excess = layerPeak(layers, rest, {}) - budget;
    for (std::size_t known = 0;;) {
        LayerChoice choice = chooseLayers(layers, excess);
        const Bytes over = layerPeak(layers, rest, choice) - budget;
        if (over <= Bytes(0)) return choice;
        Bytes taken;
        for (const int layer : choice) taken += layers[layer];
        if (taken < excess || (known > 0 && choice.size() < known)) return std::nullopt;
        known = choice.size();
        excess = taken + Bytes(1);  // one layer more, or a larger one
    }
}

const LayerChoice* PlanCache::find(double size) {
    const auto next = plans_.lower_bound(size);
    const bool serves = next != plans_.end() && next->first * (1 - tolerance_) <= size;
    ++(serves ? hits_ : misses_);
    return serves ? &next->second : nullptr;
}

const LayerChoice* PlanCache::insert(double size, LayerChoice choice) {
    return &plans_.insert_or_assign(size, std::move(choice)).first->second;
}

}  // namespace hw::planners
