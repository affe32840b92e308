// sentencepiece.cc: the only file that knows SentencePiece, behind functions of C (sentencepiece.h).
//
// Its objects live in C++'s own memory. Every function catches what C++ throws, since C could not.
#include "text/sentencepiece.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

namespace sp = sentencepiece;

void explain(char *why, const char *text)
{
    std::snprintf(why, CPL_SPM_WHY, "%s", text);
}

// Runs f, which returns 0 or -1, and turns what it throws into -1.
template <typename F> int guarded(char *why, F f) noexcept
{
    try {
        return f();
    } catch (const std::exception &e) {
        explain(why, e.what());
    } catch (...) {
        explain(why, "unknown exception");
    }
    return -1;
}

int judge(const sp::util::Status &status, char *why)
{
    if (status.ok())
        return 0;
    explain(why, status.error_message());
    return -1;
}

// The lines that next gives, as the trainer asks for them.
class Lines : public sp::SentenceIterator {
  public:
    Lines(cpl_spm_next next, void *user) : next_(next), user_(user) { Next(); }
    bool done() const override { return done_; }
    void Next() override
    {
        const char *line = nullptr;
        size_t length = 0;
        done_ = !next_(user_, &line, &length);
        if (!done_)
            line_.assign(line, length);
    }
    const std::string &value() const override { return line_; }
    sp::util::Status status() const override { return sp::util::Status(); }

  private:
    cpl_spm_next next_;
    void *user_;
    bool done_ = false;
    std::string line_;
};

} // namespace

struct cpl_spm {
    sp::SentencePieceProcessor processor;
};

cpl_spm *cpl_spm_load(const char *model, size_t length, char why[CPL_SPM_WHY])
{
    cpl_spm *made = nullptr;
    guarded(why, [&] {
        auto s = std::make_unique<cpl_spm>();
        if (judge(s->processor.LoadFromSerializedProto(std::string_view(model, length)), why) != 0)
            return -1;
        made = s.release();
        return 0;
    });
    return made;
}

void cpl_spm_free(cpl_spm *s)
{
    delete s;
}

int cpl_spm_size(const cpl_spm *s)
{
    return s->processor.GetPieceSize();
}

const char *cpl_spm_piece(const cpl_spm *s, int id, size_t *length)
{
    const std::string &piece = s->processor.IdToPiece(id);
    *length = piece.size();
    return piece.data();
}

cpl_spm_specials cpl_spm_special_ids(const cpl_spm *s)
{
    return {s->processor.pad_id(), s->processor.unk_id(), s->processor.bos_id(), s->processor.eos_id()};
}

int cpl_spm_encode(const cpl_spm *s, const char *text, size_t length, cpl_spm_take take, void *user,
                   char why[CPL_SPM_WHY])
{
    return guarded(why, [&] {
        std::vector<std::string> pieces;
        if (judge(s->processor.Encode(std::string_view(text, length), &pieces), why) != 0)
            return -1;
        for (const std::string &piece : pieces) {
            if (take(user, piece.data(), piece.size()) == 0)
                continue;
            explain(why, "no memory");
            return -1;
        }
        return 0;
    });
}

int cpl_spm_decode(const cpl_spm *s, const char *const *pieces, const size_t *lengths, size_t count,
                   cpl_spm_take take, void *user, char why[CPL_SPM_WHY])
{
    return guarded(why, [&] {
        std::vector<std::string_view> views;
        for (size_t i = 0; i < count; i++)
            views.emplace_back(pieces[i], lengths[i]);
        std::string text;
        if (judge(s->processor.Decode(views, &text), why) != 0)
            return -1;
        if (take(user, text.data(), text.size()) == 0)
            return 0;
        explain(why, "no memory");
        return -1;
    });
}

// What the text rules have left is learned from as it is (identity), in one thread and in the order of the lines, so
// that the same lines give the same model. hard_vocab_limit=false: a text that has fewer pieces than `size` gives
// fewer. Every character gets a piece (character_coverage=1): which are too rare is decided before.
int cpl_spm_train(const char *kind, int size, cpl_spm_next next, void *lines, cpl_spm_take take, void *user,
                  char why[CPL_SPM_WHY])
{
    return guarded(why, [&] {
        const std::unordered_map<std::string, std::string> options = {
            {"model_type", kind},
            {"vocab_size", std::to_string(size)},
            {"hard_vocab_limit", "false"},
            {"character_coverage", "1.0"},
            {"normalization_rule_name", "identity"},
            {"max_sentence_length", "1073741824"},
            {"num_threads", "1"},
            {"shuffle_input_sentence", "false"},
            {"minloglevel", "3"},
            {"pad_id", "0"},
            {"unk_id", "1"},
            {"bos_id", "2"},
            {"eos_id", "3"},
            {"pad_piece", "[PAD]"},
            {"unk_piece", "[UNK]"},
            {"bos_piece", "[START]"},
            {"eos_piece", "[END]"},
            {"unk_surface", "[UNK]"},
        };
        Lines sentences(next, lines);
        std::string model;
        if (judge(sp::SentencePieceTrainer::Train(options, &sentences, &model), why) != 0)
            return -1;
        if (take(user, model.data(), model.size()) == 0)
            return 0;
        explain(why, "no memory");
        return -1;
    });
}
