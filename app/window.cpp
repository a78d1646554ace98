// SPDX-License-Identifier: GPL-3.0-or-later
// `view`, `shot` and `report`, and the window without arguments.
#include <filesystem>
#include <iostream>

#include "app/cli.h"
#ifdef HIGHWATER_WITH_VIEWER
#include "viewer/viewer.h"
#else
#include "app/window_apart.h"
#endif

namespace hw::app {
namespace {

constexpr const char* kWithHelp =
    "Other sessions: the first is drawn beside this one, and those of the same program with other "
    "batches tell how large a batch fits";

#ifdef HIGHWATER_WITH_VIEWER

int showWindow(const std::string& session, const std::vector<std::string>& plans,
               const std::vector<std::string>& with) {
    std::error_code error;
    if (!session.empty() && !std::filesystem::exists(session, error))
        return fail(core::badInput("there is no file '" + session + "'", "check the path"));
    char name[] = "highwater";
    char* argv[] = {name, nullptr};
    int argc = 1;
    const auto done = viewer::runWindow(argc, argv, session, plans, with);
    return done ? *done : fail(done.error());
}

int takeShot(const viewer::ShotOptions& options, const Common& common) {
    const auto summary = viewer::shot(options);
    if (!summary) return fail(summary.error());
    if (common.json)
        answerWith(
            {{"file", summary->file}, {"width", summary->width}, {"height", summary->height}});
    else
        std::cout << summary->file << ": " << summary->width << " x " << summary->height << '\n';
    return 0;
}

int writeReport(const viewer::ReportOptions& options, const Common& common) {
    const auto written = viewer::report(options);
    if (!written) return fail(written.error());
    if (common.json)
        answerWith({{"file", written->file},
                    {"width", written->width},
                    {"height", written->height ? Json(*written->height) : Json(nullptr)}});
    else
        std::cout << "written to " << options.output << '\n';
    return 0;
}

#else

int noWindow() {
    const auto window = windowApart();
    return window ? fail({core::ErrorCode::Internal, *window + " did not start", ""})
                  : fail(window.error());
}
int showWindow(const std::string&, const std::vector<std::string>&,
               const std::vector<std::string>&) {
    return noWindow();
}

#endif

}  // namespace

int openWindow() {
    return showWindow({}, {}, {});
}

void addView(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "view", "Open the window");
    auto session = std::make_shared<std::string>();
    auto plans = std::make_shared<std::vector<std::string>>();
    command->add_option("SESSION", *session, "A session or an importable file");
    auto with = std::make_shared<std::vector<std::string>>();
    command->add_option("--plan", *plans, "Plans to show");
    command->add_option("--with", *with, kWithHelp);
    command->callback(
        [session, plans, with, &common] { common.exitCode = showWindow(*session, *plans, *with); });
}

#ifdef HIGHWATER_WITH_VIEWER

void addShot(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "shot", "Save a view as a picture; needs no display");
    auto options = std::make_shared<viewer::ShotOptions>();
    std::string names;
    for (const std::string& name : viewer::viewNames()) names += (names.empty() ? "" : ", ") + name;
    command->add_option("SESSION", options->session, "A session or an importable file")->required();
    command->add_option("--view", options->view, names)->required();
    command->add_option("--plan", options->plans, "Plans to show");
    command->add_option("--with", options->with, kWithHelp);
    command->add_option("-o,--output", options->output, "The picture: .png, .svg or .pdf")
        ->required();
    command->add_option("--preset", options->preset,
                        "column (8.5 cm), page (17.8 cm) or slide (16 : 9): size, text and light "
                        "colours of a figure");
    command->add_option("--width", options->width,
                        "Pixels (default: what the view needs, or the preset's)");
    command->add_option("--height", options->height,
                        "Pixels (default: what the view needs, or the preset's)");
    command->add_option("--scale", options->scale, "Device pixels per pixel")
        ->check(positive(kMostScale));
    command->add_option("--step", options->step, "The step (default: the last complete one)");
    command->add_option("--device", options->device,
                        "Of a trace without a step: whose memory, as info names it (default: the "
                        "device with the highest peak)");
    command->add_option("--select", options->select,
                        "Words: the op, tensor, layer or source line that they find first is "
                        "selected (\"#12\": an op)");
    command
        ->add_option("--planners", options->planners,
                     "Planners to show, separated by commas (default: those of the window)")
        ->delimiter(',');
    command->add_flag("--by-steps", options->bySteps,
                      "Steps of the schedule across instead of time, in views that have both");
    command->add_flag("--by-bytes", options->byBytes,
                      "Every storage as high as it is large, in views that can");
    command->add_flag("--light", options->light, "Light colours instead of dark ones");
    command->callback([options, &common] { common.exitCode = takeShot(*options, common); });
}

void addReport(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "report",
                               "Write the story of a step as one HTML or PDF file; plans the step "
                               "and needs no display");
    auto options = std::make_shared<viewer::ReportOptions>();
    command->add_option("SESSION", options->session, "A session or an importable file")->required();
    command->add_option("-o,--output", options->output, "The report: .html or .pdf")->required();
    command->add_option("--plan", options->plans, "Plans to compare; the first one is the chosen");
    command->add_option("--with", options->with, kWithHelp);
    command
        ->add_option("--ratio", options->ratio,
                     "The budget as a share of the recorded peak (default: the plan's, or 0.6)")
        ->check(positive(kMostRatio));
    command->add_option("--step", options->step, "The step (default: the last complete one)");
    command
        ->add_option("--planners", options->planners,
                     "Planners, separated by commas (default: those of the window)")
        ->delimiter(',');
    command->callback([options, &common] { common.exitCode = writeReport(*options, common); });
}

#else

void addReport(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "report", "Write a report (not in this build)");
    command->prefix_command();
    command->callback([&common] { common.exitCode = noWindow(); });
}

void addShot(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "shot", "Save a view as a picture (not in this build)");
    command->prefix_command();
    command->callback([&common] { common.exitCode = noWindow(); });
}

#endif

}  // namespace hw::app
