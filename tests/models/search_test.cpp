// SPDX-License-Identifier: GPL-3.0-or-later
// What a search finds, and what stands first.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>

#include "tests/models/small_document.h"
#include "tests/models/strict.h"
#include "viewer/models/search_model.h"
#include "viewer/models/table_text.h"

namespace hw::viewer {
namespace {

class Search : public ::testing::Test {
protected:
    QStringList found(const char* query) {
        model_.setQuery(QString::fromUtf8(query));
        QStringList names;
        for (int row = 0; row < model_.rowCount(); ++row)
            names << model_.index(row, SearchModel::Kind).data().toString() + QLatin1Char(' ') +
                         model_.index(row, SearchModel::Name).data().toString();
        return names;
    }
    SearchModel model_;
    QAbstractItemModelTester tester_{&model_, kStrict};
};

TEST_F(Search, PutsWhatIsNamedSoFirst) {
    model_.setDocument(samples::smallDocument());
    EXPECT_EQ(found("relu"), QStringList({"tensor relu", "op #1 relu"}));
    EXPECT_EQ(found("RELU forward"), QStringList({"op #1 relu"})) << "every word, in any case";
    EXPECT_EQ(found("conv").front(), QStringLiteral("layer conv"));
    EXPECT_EQ(found("#2"), QStringList({"op #2 convolution_backward"}));
    EXPECT_EQ(found("activation"), QStringList({"tensor convolution"}));
    EXPECT_TRUE(found("no such thing").isEmpty());
    EXPECT_TRUE(found("  ").isEmpty());
    found("relu");
    EXPECT_EQ(model_.target(0), (Target{Selection::Kind::Tensor, 2}));
    EXPECT_EQ(model_.index(0, SearchModel::Size).data(kRawRole).toLongLong(), 60);
}

TEST_F(Search, ListsSoManyAndCountsAll) {
    const DocumentPointer document = *loadDocument(SAMPLE_SESSION);
    model_.setDocument(document);
    found("a");
    EXPECT_EQ(model_.rowCount(), static_cast<int>(SearchModel::kShown));
    EXPECT_GT(model_.matches(), SearchModel::kShown);
    model_.setDocument(nullptr);
    EXPECT_TRUE(found("a").isEmpty());
}

class SearchInSnapshots : public Search, public ::testing::WithParamInterface<std::string> {};
HW_WITH_DATA(SearchInSnapshots, "torch-snapshot");

TEST_P(SearchInSnapshots, ALineLeadsToTheLargestTensorThatItMade) {
    const DocumentPointer document =
        *loadDocument(GetParam() + "/torch-snapshot/empty-cache.pickle.gz");
    model_.setDocument(document);
    ASSERT_FALSE(document->stacks.empty());
    const QStringList lines = found(".py:");
    ASSERT_FALSE(lines.isEmpty());
    ASSERT_TRUE(lines.front().startsWith(QStringLiteral("line ")));
    const Target target = model_.target(0);
    ASSERT_EQ(target.kind, Selection::Kind::Tensor);
    const QString line = document->lineOf(target.index);
    EXPECT_EQ(QStringLiteral("line ") + line, lines.front());
    for (core::StorageIndex s = 0;
         s < static_cast<core::StorageIndex>(document->graph.storages.size()); ++s)
        if (document->lineOf(s) == line) {
            EXPECT_LE(document->graph.storages[s].bytes,
                      document->graph.storages[target.index].bytes);
        }
}

TEST(FirstFound, IsWhatAPictureSelects) {
    const DocumentPointer document = samples::smallDocument();
    EXPECT_EQ(*firstFound(document, "conv"), (Target{Selection::Kind::Layer, 1}));
    EXPECT_EQ(firstFound(document, "nothing").error().code, core::ErrorCode::Usage);
}

}  // namespace
}  // namespace hw::viewer
