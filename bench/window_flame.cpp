// SPDX-License-Identifier: GPL-3.0-or-later
#include "bench/window_flame.h"

#include <QTest>
#include <random>

#include "bench/window_frames.h"
#include "tests/graphs/networks.h"
#include "viewer/plots/flame_view.h"

namespace hw::bench {
namespace {

constexpr int kWidth = 1900, kHeight = 600, kFrames = 200;
constexpr int kDepth = 24, kParts = 50'000;

/// Calls that call one to four others, until there are so many parts.
class MadeUpCalls {
public:
    core::OriginNode make() {
        core::OriginNode root;
        root.name = "program";
        grow(root, 0);
        return root;
    }
    int parts() const { return parts_; }

private:
    void grow(core::OriginNode& node, int depth) {
        ++parts_;
        node.largest = 0;
        const int calls = depth == kDepth ? 0 : depth < 8 ? 3 : static_cast<int>(random_() % 3);
        for (int i = 0; i < calls && parts_ < kParts; ++i) {
            core::OriginNode call;
            call.name = "model.py:" + std::to_string(random_() % 4000) + " forward";
            grow(call, depth + 1);
            node.bytes += call.bytes;
            node.children.push_back(std::move(call));
        }
        if (node.children.empty())
            node.bytes = core::Bytes(static_cast<std::int64_t>(512 << random_() % 14));
        node.either = node.bytes;
    }
    std::mt19937 random_{1};
    int parts_ = 0;
};

}  // namespace

int flame() {
    LstmNetwork network;
    auto document = viewer::documentOf(generate(network), QStringLiteral("lstm"));
    if (!document) {
        std::fprintf(stderr, "bench_window: %s\n", document.error().what.c_str());
        return 1;
    }
    MadeUpCalls calls;
    viewer::FlameView view;
    view.resize(kWidth, kHeight);
    view.setVisible(true);
    Painted painted(view);
    Frames first, keys, zooms, searches;
    core::OriginNode root = calls.make();
    frame(first, painted, [&] { view.show(*document, std::move(root), QStringLiteral("peak")); });
    std::printf("flame graph of %d parts, %zu of them wide enough to be drawn\n", calls.parts(),
                view.cells().size());
    const auto press = [&](Qt::Key key) { return [&view, key] { QTest::keyClick(&view, key); }; };
    for (int i = 0; i < 10; ++i) press(Qt::Key_Down)();
    for (int i = 0; i < kFrames; ++i) frame(keys, painted, press(Qt::Key_Right));
    for (int i = 0; i < kFrames; ++i) {
        if (i % 8 < 4) press(Qt::Key_Down)();
        frame(zooms, painted, press(i % 8 < 4 ? Qt::Key_Return : Qt::Key_Escape));
    }
    for (int i = 0; i < kFrames; ++i)
        frame(searches, painted, [&] { view.setSearch(QString::number(i)); });
    std::printf("%-28s %8s %8s %8s\n", "frames, ms", "median", "99 %", "slowest");
    printFrames("shown at first", first.clock);
    printFrames("from part to part", keys.clock);
    printFrames("zoom", zooms.clock);
    printFrames("search", searches.clock);
    return 0;
}

}  // namespace hw::bench
