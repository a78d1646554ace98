// SPDX-License-Identifier: GPL-3.0-or-later
// How fast the window is: on a session of many memory events, and when its budget is moved.
// usage: bench_window write FILE EVENTS | events FILE | slider [FILE] | flame
#include <unistd.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QStyleFactory>
#include <QTest>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>

#include "bench/made_up_events.h"
#include "bench/window_flame.h"
#include "bench/window_frames.h"
#include "tests/graphs/networks.h"
#include "viewer/panels/main_window.h"
#include "viewer/panels/timeline_panel.h"
#include "viewer/panels/whatif_panel.h"
#include "viewer/plots/theme.h"

namespace {

using namespace hw;
using bench::frame, bench::Frames, bench::Painted, bench::percentile, bench::printFrames;
constexpr int kWidth = 1920, kHeight = 1080, kFrames = 400, kMoves = 30;
constexpr int kPatience = 600'000;  // milliseconds

double residentMB() {
    std::ifstream statm("/proc/self/statm");
    long all = 0, resident = 0;
    statm >> all >> resident;
    return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

int events(const char* file) {
    const double empty = residentMB();
    QElapsedTimer timer;
    timer.start();
    viewer::MainWindow window;
    window.resize(kWidth, kHeight);
    window.show();
    viewer::TimelinePlot& plot = window.panel<viewer::TimelinePanel>().plot();
    Painted painted(plot);
    window.open(QString::fromLocal8Bit(file));
    while ((!window.workspace().document() || painted.count == 0) && timer.elapsed() < kPatience)
        QCoreApplication::processEvents();
    const double first = static_cast<double>(timer.nsecsElapsed()) / 1e6;
    if (!window.workspace().document() || !window.workspace().document()->series) {
        std::fprintf(stderr, "bench_window: %s was not opened as a series\n", file);
        return 1;
    }
    std::printf("%lld events; plot of %d x %d in a window of %d x %d\n",
                static_cast<long long>(window.workspace().document()->series->events()),
                plot.width(), plot.height(), window.width(), window.height());
    std::printf("first paint %.0f ms; resident %.0f MB, %.0f MB before the window\n", first,
                residentMB(), empty);
    QTest::qWait(200);  // the docks have found their places

    Frames zooms, pans;
    for (int i = 0; i < kFrames; ++i) {  // in to a hundred thousandth and out again
        const double factor = i / 50 % 2 == 0 ? 1.26 : 1 / 1.26;
        frame(zooms, painted, [&] { plot.zoom(factor); });
    }
    for (const int depth : {4, 12, 24, 36}) {
        plot.resetZoom();
        for (int i = 0; i < depth; ++i) plot.zoom(1.26);
        plot.pan(-1e6);
        QTest::qWait(50);
        for (int i = 0; i < kFrames / 4; ++i)
            frame(pans, painted, [&] { plot.pan(depth == 4 ? 0.005 : 0.05); });
    }
    std::printf("%-28s %8s %8s %8s\n", "frames, ms", "median", "99 %", "slowest");
    printFrames("zoom, by the clock", zooms.clock);
    printFrames("zoom, processor time", zooms.processor);
    printFrames("pan, by the clock", pans.clock);
    printFrames("pan, processor time", pans.processor);
    std::printf("resident after all of it %.0f MB\n", residentMB());
    return 0;
}

/// Moves the slider to random places. An answer is a plan that fits there, drawn, or, where none is
/// known, the statement of what the nearest one needs.
struct Answers {
    std::vector<double> plans;   // milliseconds until a plan that fits was drawn
    std::vector<double> first;   // until that, or until it was said that none is known
    std::vector<double> frozen;  // of each move the longest that the window did not answer at all
    int without = 0;             // moves without a plan in half a second
    double highest = 0;          // of their budgets, as a share of the peak
};

Answers answers(viewer::MainWindow& window, int moves, std::mt19937& random) {
    constexpr double kPatient = 500;  // milliseconds
    viewer::BudgetSlider& slider = window.panel<viewer::WhatIfPanel>().slider();
    viewer::Workspace& shared = window.workspace();
    const double floor = ratio(shared.document()->floor, shared.document()->peak());
    std::uniform_real_distribution<double> ratios(floor + 0.01, 0.99);
    Answers all;
    for (int i = 0; i < moves; ++i) {
        const QSignalBlocker quiet(slider);
        slider.setRatio(ratios(random));
        slider.blockSignals(false);
        const auto budget = core::Bytes(static_cast<std::int64_t>(
            slider.ratio() * static_cast<double>(shared.document()->peak().count())));
        QElapsedTimer timer;
        const auto passed = [&] { return static_cast<double>(timer.nsecsElapsed()) / 1e6; };
        timer.start();
        emit slider.valueChanged(slider.value());
        double worst = passed(), said = -1, drawn = -1;
        while (drawn < 0 && passed() < kPatient) {
            const double before = passed();
            const auto& plan = shared.active().plan();
            const bool fits = plan && plan->ok() && plan->peak <= budget;
            QCoreApplication::processEvents();  // paints what is known
            worst = std::max(worst, passed() - before);
            if (fits) drawn = passed();
            if (said < 0) said = passed();
        }
        if (drawn < 0) {
            ++all.without;
            all.highest = std::max(all.highest, slider.ratio());
        } else {
            all.plans.push_back(drawn);
        }
        all.first.push_back(said);
        const double rests = passed() + 150;  // as long as a hand rests
        while (passed() < rests) {
            const double before = passed();
            QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents, 5);
            worst = std::max(worst, passed() - before);
        }
        all.frozen.push_back(worst);
    }
    return all;
}

void printAnswers(const char* what, const Answers& all) {
    const auto within = [](const std::vector<double>& times) {
        return std::count_if(times.begin(), times.end(), [](double time) { return time < 100; });
    };
    std::printf("%s, %zu moves\n", what, all.first.size());
    printFrames("  any answer", all.first);
    if (!all.plans.empty()) printFrames("  a plan that fits, drawn", all.plans);
    printFrames("  window busy at a stretch", all.frozen);
    std::printf("  answered within 100 ms: %.0f %%; with a plan: %.0f %%\n",
                100.0 * static_cast<double>(within(all.first)) / double(all.first.size()),
                100.0 * static_cast<double>(within(all.plans)) / double(all.first.size()));
    if (all.without > 0)
        std::printf("  none known within 500 ms, and said so: %d, at budgets up to %.1f %%\n",
                    all.without, 100 * all.highest);
}

core::Result<viewer::DocumentPointer> unrolledLstm() {
    bench::LstmNetwork network;
    network.steps = 56;
    network.layers = 3;
    return viewer::documentOf(bench::generate(network), QStringLiteral("lstm"));
}

/// The longest that the window did not answer while it waited for that.
template <typename Condition>
double busyUntil(Condition met) {
    QElapsedTimer timer;
    timer.start();
    double longest = 0, before = 0;
    while (!met() && before < kPatience) {
        QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents, 5);
        const double now = static_cast<double>(timer.nsecsElapsed()) / 1e6;
        longest = std::max(longest, now - before);
        before = now;
    }
    return longest;
}

/// Asks every planner for a plan: the seconds after which their rows had one, and how long the
/// window did not answer meanwhile.
void compareEvery(viewer::MainWindow& window) {
    constexpr double kRatio = 0.6;
    viewer::Workspace& shared = window.workspace();
    shared.setBudgetRatio(kRatio);
    shared.planEvery();
    std::map<QString, double> arrived;
    QElapsedTimer timer;
    timer.start();
    const double longest = busyUntil([&] {
        const std::vector<viewer::PlanRow> rows = shared.plans().rows(shared.budget());
        for (const viewer::PlanRow& row : rows)
            if (row.plan) arrived.emplace(row.planner, static_cast<double>(timer.elapsed()) / 1e3);
        return arrived.size() == rows.size();
    });
    std::printf(
        "every planner at %.1f: %zu of %zu rows, window busy for at most %.0f ms; seconds:\n",
        kRatio, arrived.size(), shared.plans().rows(shared.budget()).size(), longest);
    for (const auto& [planner, after] : arrived)
        std::printf("  %-24s %6.1f\n", planner.toLocal8Bit().constData(), after);
}

/// On that file, or on a made-up network.
int slider(const char* file) {
    std::mt19937 random(1);
    viewer::MainWindow window;
    window.resize(kWidth, kHeight);
    window.show();
    QTest::qWait(200);  // the docks have found their places
    viewer::Workspace& shared = window.workspace();
    QElapsedTimer timer;
    timer.start();
    if (file != nullptr) {
        window.open(QString::fromLocal8Bit(file));
        const double busy = busyUntil([&] { return shared.document() != nullptr; });
        std::printf("opened after %lld ms, busy for at most %.0f ms\n", timer.elapsed(), busy);
        timer.restart();
    } else if (const core::Result<viewer::DocumentPointer> made = unrolledLstm()) {
        shared.show(*made);
    }
    if (!shared.document()) {
        std::fprintf(stderr, "bench_window: nothing was opened\n");
        return 1;
    }
    shared.setBudget(shared.budget());
    shared.requestFrontier();
    const double busy = busyUntil([&] { return shared.active().plan() != nullptr; });
    std::printf(
        "%zu ops, floor %.1f %%; the first plan ever after %lld ms, busy for at most %.0f ms\n",
        shared.document()->graph.ops.size(),
        100 * ratio(shared.document()->floor, shared.document()->peak()), timer.elapsed(), busy);
    std::printf("%-28s %8s %8s %8s\n", "milliseconds", "median", "99 %", "slowest");
    printAnswers("right after opening", answers(window, kMoves, random));
    printAnswers("while plans are computed", answers(window, kMoves, random));
    shared.cancel();
    printAnswers("from what is known", answers(window, kMoves, random));
    compareEvery(window);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "write" && argc == 4) {
        const core::Status done = bench::writeEvents(argv[2], std::atoll(argv[3]));
        if (!done) std::fprintf(stderr, "bench_window: %s\n", done.error().what.c_str());
        return done ? 0 : 1;
    }
    const bool alone = what == "slider" || what == "flame";
    const bool withFile = what == "slider" || what == "events";
    if (!(withFile && argc == 3) && !(alone && argc == 2)) {
        std::fprintf(stderr, "usage: %s write FILE EVENTS | events FILE | slider [FILE] | flame\n",
                     argv[0]);
        return 2;
    }
    QApplication application(argc, argv);
    QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    viewer::setTheme(false);
    qApp->setStyleSheet(viewer::theme().styleSheet());
    return what == "events" ? events(argv[2]) : what == "slider" ? slider(argv[2]) : bench::flame();
}
