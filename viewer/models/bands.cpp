// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/bands.h"

#include <QCoreApplication>
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <unordered_map>

#include "core/session/origins.h"
#include "viewer/models/format.h"
#include "viewer/models/held_storages.h"

namespace hw::viewer {

using core::Bytes;
using core::Category;

/// Finds out what asked for each storage.
class PlaceFinder {
public:
    PlaceFinder(const core::RecordedMemory& memory, const core::CallStacks& stacks)
        : memory_(memory),
          stacks_(stacks),
          events_(static_cast<double>(
              std::max<std::size_t>(1, std::max(memory.moments.size(), memory.events.size())))) {}

    void add(const core::RecordedMemory::Held& held) {
        const std::int32_t place = placeOf(held);
        bands_.placeOf_.emplace_back(held.storage, place);
        const bool atPeak = held.first <= memory_.peakEvent && memory_.peakEvent < held.end;
        if (atPeak) (held.category == Category::Unknown ? uncategorised_ : known_) += held.bytes;
        Found& found =
            place == Bands::kNowhere ? nowhere_ : found_[static_cast<std::size_t>(place)];
        const auto bytes = static_cast<double>(held.bytes.count());
        found.all += bytes;
        found.onAverage += bytes * (held.end - held.first) / events_;
        if (atPeak) found.atPeak += bytes;
    }

    Bands finish() {
        if (found_.empty() || known_ >= uncategorised_) return {};
        std::vector<std::int32_t> order(found_.size()), rank(found_.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [this](std::int32_t a, std::int32_t b) {
            return found(a).atPeak + found(a).onAverage > found(b).atPeak + found(b).onAverage;
        });
        const auto lines = std::min<std::ptrdiff_t>(kLineBands, std::ssize(order));
        std::stable_sort(
            order.begin(), order.begin() + lines,
            [this](std::int32_t a, std::int32_t b) { return found(a).lasts() > found(b).lasts(); });
        bands_.unknownOnTop_ = nowhere_.all > 0 && nowhere_.lasts() < 0.5;
        for (std::size_t i = 0; i < order.size(); ++i) {
            rank[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
            bands_.places_.push_back({found(order[i]).text, labelOf(found(order[i]))});
        }
        for (auto& [storage, place] : bands_.placeOf_)
            if (place != Bands::kNowhere) place = rank[static_cast<std::size_t>(place)];
        if (!std::is_sorted(bands_.placeOf_.begin(), bands_.placeOf_.end()))
            std::sort(bands_.placeOf_.begin(), bands_.placeOf_.end());
        return std::move(bands_);
    }

private:
    struct Found {
        QString text;
        const core::SourceFrameRow* line = nullptr;
        double all = 0, atPeak = 0, onAverage = 0;  // bytes; onAverage: of all events

        /// For what part of the trace its bytes are there, 0 to 1.
        double lasts() const { return all > 0 ? onAverage / all : 0; }
    };
    const Found& found(std::int32_t place) const { return found_[static_cast<std::size_t>(place)]; }

    std::int32_t placeOf(const core::RecordedMemory::Held& held) {
        const std::int64_t stack = stacks_.ofStorage(held.storage);
        if (stack != core::CallStacks::kNone) {
            const auto [at, isNew] = ofStack_.try_emplace(stack, Bands::kNowhere);
            if (const auto* line = isNew ? stacks_.line(stack) : nullptr)
                at->second = named(line->file + '\n' + core::frameText(*line),
                                   toQString(core::frameText(*line)), line);
            if (at->second != Bands::kNowhere) return at->second;
        }
        const auto [at, isNew] =
            unlined_.try_emplace({held.category, held.op, held.layer}, Bands::kNowhere);
        if (!isNew) return at->second;
        const std::string name =
            core::nameWithoutLine(memory_.graph, held.category, held.op, held.layer);
        if (!name.empty()) at->second = named(name, shortOpName(name), nullptr);
        return at->second;
    }

    std::int32_t named(const std::string& identity, const QString& text,
                       const core::SourceFrameRow* line) {
        const auto [at, isNew] =
            knownPlaces_.try_emplace(identity, static_cast<std::int32_t>(found_.size()));
        if (isNew) found_.push_back({text, line});
        return at->second;
    }

    // Two files of one name are told apart by their folders.
    QString labelOf(const Found& of) const {
        if (!of.line) return of.text;
        const std::string label = core::lineText(*of.line);
        const bool alone = std::none_of(found_.begin(), found_.end(), [&](const Found& other) {
            return &other != &of && other.line && core::lineText(*other.line) == label;
        });
        if (alone) return toQString(label);
        return toQString(of.line->file).section(QLatin1Char('/'), -2, -2) + QLatin1Char('/') +
               of.text;
    }

    const core::RecordedMemory& memory_;
    const core::CallStacks& stacks_;
    double events_;
    Bands bands_;
    std::vector<Found> found_;
    Found nowhere_;  // what no line is known of
    std::unordered_map<std::int64_t, std::int32_t> ofStack_;
    std::map<std::tuple<Category, core::OpIndex, core::LayerIndex>, std::int32_t> unlined_;
    std::unordered_map<std::string, std::int32_t> knownPlaces_;
    Bytes known_, uncategorised_;  // at the peak
};

void fitTo(Bytes total, BandBytes& bytes) {
    Bytes left = total;
    for (Band band = 0; band < kBandCount; ++band) {
        if (band == kUnknownBand) continue;
        bytes[band] = std::min(bytes[band], left);
        left -= bytes[band];
    }
    bytes[kUnknownBand] = left;
}

Bands Bands::of(const core::RecordedMemory& memory, const core::CallStacks& stacks) {
    PlaceFinder finder(memory, stacks);
    visitHeld(memory, [&](const core::RecordedMemory::Held& held) { finder.add(held); });
    return finder.finish();
}

std::int32_t Bands::placeIndex(std::int64_t storage) const {
    // Mostly ids follow each other without a hole.
    const std::int64_t guess = placeOf_.empty() ? -1 : storage - placeOf_.front().first;
    if (guess >= 0 && guess < std::ssize(placeOf_))
        if (const auto& at = placeOf_[static_cast<std::size_t>(guess)]; at.first == storage)
            return at.second;
    const auto at =
        std::lower_bound(placeOf_.begin(), placeOf_.end(), std::pair(storage, kNowhere));
    return at == placeOf_.end() || at->first != storage ? kNowhere : at->second;
}

Band Bands::of(std::int64_t storage, Category category) const {
    if (!byLine()) return bandOf(category);
    const std::int32_t place = placeIndex(storage);
    if (place == kNowhere) return kUnknownBand;
    return place < kLineBands ? static_cast<Band>(place) : kOtherLines;
}

Band Bands::ofPlace(const QString& place) const {
    if (place.isEmpty()) return kUnknownBand;
    const auto end = places_.begin() + std::min<std::ptrdiff_t>(kLineBands, std::ssize(places_));
    const auto at =
        std::find_if(places_.begin(), end, [&](const Place& each) { return each.text == place; });
    return at == end ? kOtherLines : static_cast<Band>(at - places_.begin());
}

QString Bands::placeOf(std::int64_t storage) const {
    const std::int32_t place = byLine() ? placeIndex(storage) : kNowhere;
    return place == kNowhere ? QString() : places_[static_cast<std::size_t>(place)].text;
}

QString Bands::name(Band band) const {
    if (!byLine()) return categoryText(static_cast<Category>(band));
    if (band == kUnknownBand) return QCoreApplication::translate("Bands", "(not known)");
    if (band >= places_.size() || band == kOtherLines)
        return QCoreApplication::translate("Bands", "other lines");
    return places_[band].label;
}

Bytes Bands::of(const BandBytes& bytes, Category category) const {
    return byLine() ? Bytes(0) : bytes[bandOf(category)];
}

std::vector<Band> Bands::fromTheBottom() const {
    if (!byLine())
        return {bandOf(Category::Parameter),  bandOf(Category::OptimizerState),
                bandOf(Category::Input),      bandOf(Category::Unknown),
                bandOf(Category::Gradient),   bandOf(Category::GatheredParameter),
                bandOf(Category::Activation), bandOf(Category::Temporary),
                bandOf(Category::Workspace)};
    std::vector<Band> order;
    for (Band line = 0; line < kLineBands; ++line) order.push_back(line);
    order.push_back(kOtherLines);
    order.insert(unknownOnTop_ ? order.end() : order.begin(), kUnknownBand);
    return order;
}

}  // namespace hw::viewer
