/* The features and weights that choose the main content of a page, for each line of a scan.

   main_content/features.py, main_content/context.py, main_content/hints.py and page_type.py are the references, and
   their names are used here. compiled_scores.py calls `read_page`, answers the questions about lines that only Python
   can classify, and calls `choose_lines`, or `score_page` and `score_context`. Like compiled_scan.c, with which it becomes one library,
   the file needs no header and no library. Python passes all tables, words and bounds in `Settings` and all memory, of
   which `count_work_bytes` tells the size. All loops are linear in the text, boxes and lines of a page, except that
   the title, which is bounded, is searched for each line. */

typedef __SIZE_TYPE__ size_t;
typedef unsigned char byte;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

/* Words of u16 characters. Each ends with a zero, and the list with an empty one. They are sorted by bucket. */
enum {
    FURNITURE_LINES, FURNITURE_WORDS, NOTICE_WORDS, COPYRIGHT_SIGNS, MONTHS, TIME_UNITS, CURRENCIES, HEADING_STARTS,
    PART_WORDS, PARTS_OF_WORDS, LISTS
};
enum { CHARACTERS = 0x2200, OTHER_SCRIPTS = 0x370, BUCKETS = 256, MAX_LIST = 1024, MAX_LINE = 512, BITS = 64, MAX_TITLE_BYTES = 2048 };

typedef struct {
    u64 (*hash)(const void *, size_t, u64 seed);
    u64 secret; /* an odd number and the seed of hashes, so that no page can be made for many collisions */
    const u16 *lower; /* the lowercase of each of the first characters; 0: only Python knows it */
    const byte *flags; /* of the same characters, see below */
    const u32 *sentence_ends; /* characters, and a zero */
    const u16 *lists[LISTS];
    const u64 *word_bits, *part_bits; /* of the words in the last two lists */
    const u64 *tag_bits, *flag_bits;
    const byte *tag_codes, *heading_levels, *has_name; /* by number of a tag; has_name: whether its words count */
    const int *offsets, *context_offsets; /* of tables */
    const double *weights, *bit_weights, *context_weights, *product_bit_weights, *type_weights;
    u64 furniture_bits;
    double intercept, large_share, min_part_share, min_core_share, min_wider;
    int bits, signs, types, max_short_chars, max_notice_chars, max_date_chars, max_name_chars;
    int min_compound_chars, min_title_chars;
    int min_region_lines, near_lines, wide_lines, min_paragraph_size, max_weight_chars, many_lines;
} Settings;

enum { WORD = 1, LETTER = 2, DIGIT = 4, STRIPPED = 8, END = 16, COLON_SIGN = 32, CURRENCY = 64, SIGN_START = 128 };
enum { PLAIN, FURNITURE, FURNITURE_WORD, COPYRIGHT, DATE, PRICE, NUMBER, SYMBOLS, NOTICE, COLON, SENTENCE, UNKNOWN };
enum { NO_HEADING, CONTENT_HEADING };
enum { LINK_SHARES = 6, SIZES = 10, COARSE_SIZES = 3, GROUP_LINKS = 4, POSITIONS = 12, ITEM_COUNTS = 6, COUNTS = 8 };
enum { AFTER_TITLE = 3, IN_TITLE = 4, LONG_SIZE = 8 };
#define LEVELS (24 - 0.001)
#define QUARTERS 3.999

typedef struct { const u16 *start; int length; } Word;
typedef struct { int count; Word words[MAX_LIST]; int first[BUCKETS + 1]; u64 lengths[BUCKETS]; } Words;

/* What Python passes. Strings of a list are separated by NULs. */
typedef struct {
    i64 box_count, line_count;
    const int *parents, *box_ends, *line_boxes, *chars, *link_chars;
    const byte *flags, *tags, *classes, *hints, *texts, *title;
    i64 class_bytes, hint_bytes, text_bytes, title_bytes, title_chars;
    int *questions; /* pairs: twice the number of a line, plus 1 if it is a heading; and the answer */
} Page;

typedef struct {
    const Page *page;
    int boxes, lines, questions, table_bits;
    /* Of boxes; ends: of lines. `others`: the first box or line with the same key, in several steps. */
    int *starts, *ends, *names, *items, *counts, *others, *groups, *regions, *parts;
    byte *codes, *item_codes, *levels;
    u64 *masks;
    double *scores, *inner, *wide;
    const byte **classes, **hints;
    /* Of lines: */
    i64 *chars_before, *links_before;
    const byte **texts;
    byte *sizes, *shares, *kinds, *line_ends, *repeats, *places, *item_kinds, *sections;
    double *before, *weights_before, *masses, *line_weights, *group_masses, *group_weights;
    int *table;
    /* For the choice of lines: */
    double *odds, *likely, *changed;
    int *order, *merged;
    byte *is_shared, *is_doubtful, *doubtful_boxes;
    i64 *box_lines, *box_shared, *box_chars, *box_links;
} State;

static const Settings *settings;
static Words lists[LISTS];

static int is_odd(int value) { return value & 1; }
static int smaller(int one, int other) { return one < other ? one : other; }
static int larger(int one, int other) { return one > other ? one : other; }
static double largest(double one, double other) { return one > other ? one : other; }

static int count_bits(i64 value, int most) {
    int bits = 0;
    while (value > 0 && bits < most) value >>= 1, bits++;
    return bits;
}

/* ---- Memory ---- */

typedef struct { size_t base, used; } Memory;

static void *take(Memory *memory, size_t count, size_t size) {
    void *start = (void *)(memory->base + memory->used);
    memory->used += (count * size + 7) & ~(size_t)7;
    return start;
}

/* Place all arrays in the memory. If it is not there yet, `dummy` takes the place of the state. */
static State *lay_out(Memory *memory, State *dummy, int boxes, int lines) {
    size_t each = (size_t)boxes, line = (size_t)lines, next = line + 1;
    State *state = take(memory, 1, sizeof *state);
    int bits = 3;
    if (dummy) state = dummy;
    while ((1 << bits) < 2 * larger(boxes, lines)) bits++;
    state->boxes = boxes;
    state->lines = lines;
    state->table_bits = bits;
#define TAKE(name, count) state->name = take(memory, count, sizeof *state->name)
    TAKE(starts, each); TAKE(ends, each); TAKE(names, each); TAKE(items, each); TAKE(counts, each);
    TAKE(others, larger(boxes, lines)); TAKE(groups, each); TAKE(regions, each); TAKE(parts, each);
    TAKE(codes, each); TAKE(item_codes, each); TAKE(levels, each); TAKE(masks, each);
    TAKE(scores, each); TAKE(inner, each); TAKE(wide, each); TAKE(classes, each + 1); TAKE(hints, each + 1);
    TAKE(chars_before, next); TAKE(links_before, next); TAKE(texts, next);
    TAKE(sizes, line); TAKE(shares, line); TAKE(kinds, line); TAKE(line_ends, line); TAKE(repeats, line);
    TAKE(places, line); TAKE(item_kinds, line); TAKE(sections, line);
    TAKE(before, next); TAKE(weights_before, next); TAKE(masses, line); TAKE(line_weights, line);
    TAKE(group_masses, each); TAKE(group_weights, each); TAKE(table, (size_t)1 << bits);
    TAKE(odds, line); TAKE(likely, line); TAKE(changed, line); TAKE(order, line); TAKE(merged, line);
    TAKE(is_shared, line); TAKE(is_doubtful, line); TAKE(doubtful_boxes, each);
    TAKE(box_lines, each); TAKE(box_shared, each); TAKE(box_chars, each); TAKE(box_links, each);
#undef TAKE
    return state;
}

size_t count_work_bytes(int boxes, int lines) {
    Memory memory;
    State dummy;
    memory.base = memory.used = 0;
    lay_out(&memory, &dummy, boxes, lines);
    return memory.used;
}

/* Clear memory in steps of eight bytes, as `take` gives it. */
static void clear(void *to, size_t length) {
    u64 *at = to;
    for (length = (length + 7) / 8; length--;) *at++ = 0;
}

static int equals(const byte *one, const byte *other, size_t length) {
    while (length--) if (*one++ != *other++) return 0;
    return 1;
}

static size_t find_slot(const State *state, u64 key) {
    return (size_t)(key * settings->secret >> (64 - state->table_bits));
}
static size_t get_next_slot(const State *state, size_t slot) {
    return (slot + 1) & (((size_t)1 << state->table_bits) - 1);
}
static void clear_table(const State *state) { clear(state->table, sizeof(int) << state->table_bits); }

/* ---- Texts ---- */

typedef struct { u64 value; } __attribute__((packed)) Eight; /* eight bytes at any address */
static u64 get_eight(const byte *at) { return ((const Eight *)(const void *)at)->value; }
static const u64 ones = 0x0101010101010101ull;

/* Return whether one of eight bytes has a value. */
static int has_byte(const byte *at, byte value) {
    u64 word = get_eight(at) ^ ones * value;
    return ((word - ones) & ~word & ones << 7) != 0;
}

/* Find the starts of strings that are separated by NULs, and that of one more; return whether there are `count`. */
static int split(const byte *at, i64 length, int count, const byte **starts) {
    const byte *end = at + length;
    int found = 1;
    starts[0] = at;
    for (;; at++) {
        while (end - at >= 8 && !has_byte(at, 0)) at += 8;
        while (at < end && *at) at++;
        if (at >= end) break;
        if (found == count) return 0;
        starts[found++] = at + 1;
    }
    starts[found] = end + 1;
    return found == count;
}

static int is_continuation(byte each) { return (each & 0xC0) == 0x80; }

static int count_chars(const byte *at, const byte *end) {
    int count = 0;
    for (; end - at >= 8; at += 8) {
        u64 word = get_eight(at);
        count += 8 - (int)(((word >> 7 & ~word >> 6 & ones) * ones) >> 56);
    }
    while (at < end) count += !is_continuation(*at++);
    return count;
}

static const byte *skip_chars(const byte *at, const byte *end, int count) {
    while (at < end && (count -= !is_continuation(*at)) >= 0) at++;
    return at;
}

static u32 get_char(const byte *at) {
    if (*at < 0x80) return *at;
    if (*at < 0xE0) return (u32)(*at & 0x1F) << 6 | (at[1] & 0x3F);
    if (*at < 0xF0) return (u32)(*at & 0xF) << 12 | (u32)(at[1] & 0x3F) << 6 | (at[2] & 0x3F);
    return (u32)(*at & 7) << 18 | (u32)(at[1] & 0x3F) << 12 | (u32)(at[2] & 0x3F) << 6 | (at[3] & 0x3F);
}

static int get_char_bytes(byte first) { return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

/* Write the characters of a text in lowercase; return their number, or -1 if only Python knows how. */
static int lower_text(const byte *at, const byte *end, u16 *to) {
    const u16 *first = to, *lower = settings->lower;
    while (at < end) {
        u32 character = *at;
        int length = 1;
        if (character >= 0x80) {
            character = get_char(at);
            length = get_char_bytes(*at);
            if (character >= CHARACTERS) return -1;
        }
        if (!(*to = lower[character])) return -1;
        to++;
        at += length;
    }
    return (int)(to - first);
}

static byte get_flags(u16 character) { return settings->flags[character]; }
static int has_flag(const u16 *text, int at, int length, int flag) { return at < length && get_flags(text[at]) & flag; }
static int starts_word(const u16 *text, int at) { return !at || !(get_flags(text[at - 1]) & WORD); }

/* Return the first word of a list that a text starts with, or equals if `is_whole`; NULL if there is none. */
static const Word *find_word(int list, const u16 *text, int length, int is_whole) {
    const Words *words = &lists[list];
    int bucket, number, at;
    if (length <= 0) return 0;
    bucket = *text % BUCKETS;
    if (is_whole && !(words->lengths[bucket] >> smaller(length, BITS - 1) & 1)) return 0;
    for (number = words->first[bucket]; number < words->first[bucket + 1]; number++) {
        const Word *word = &words->words[number];
        if (word->length > length || (is_whole && word->length != length)) continue;
        for (at = 0; at < word->length && word->start[at] == text[at];) at++;
        if (at == word->length) return word;
    }
    return 0;
}

static int has_listed_word(int list, const u16 *text, int length) {
    int at = 0, end;
    for (; at < length; at = end + 1) {
        for (end = at; end < length && text[end] != ' ';) end++;
        if (find_word(list, text + at, end - at, 1)) return 1;
    }
    return 0;
}

/* ---- Kinds of lines ---- */

static int is_any_of(u16 character, u16 one, u16 two, u16 three) {
    return character == one || character == two || character == three;
}

static int is_month_before_day(const u16 *text, int at, int length) {
    const Word *month;
    if (!starts_word(text, at) || !(month = find_word(MONTHS, text + at, length - at, 0))) return 0;
    at += month->length;
    while (at < length && ((text[at] >= 'a' && text[at] <= 'z') || text[at] == 0xE9)) at++;
    if (at < length && text[at] == '.') at++;
    if (at < length && text[at] == ',') at++;
    return at < length && text[at] == ' ' && has_flag(text, at + 1, length, DIGIT);
}

/* Return whether a date or time starts with the digit at a place. */
static int is_number_of_date(const u16 *text, int at, int length) {
    int next = at + 1, end;
    if (next < length && text[next] == '.') next++;
    if (next < length && text[next] == ' ') {
        if (find_word(MONTHS, text + next + 1, length - next - 1, 0)) return 1;
        if (next + 4 < length && text[next + 1] == 'd' && text[next + 2] == 'e' && text[next + 3] == ' '
            && find_word(MONTHS, text + next + 4, length - next - 4, 0))
            return 1;
    }
    next = at + 1;
    if (next < length && text[next] == ':' && has_flag(text, at + 2, length, DIGIT)
        && has_flag(text, at + 3, length, DIGIT))
        return 1;
    if (next < length && is_any_of(text[next], '-', '/', '.') && has_flag(text, at + 2, length, DIGIT)) {
        next = at + 3 + has_flag(text, at + 3, length, DIGIT);
        if (next < length && is_any_of(text[next], '-', '/', '.') && has_flag(text, next + 1, length, DIGIT)) return 1;
    }
    if (!starts_word(text, at)) return 0;
    while (has_flag(text, at, length, DIGIT)) at++;
    if (at < length && text[at] == ' ') at++;
    for (end = at; has_flag(text, end, length, WORD);) end++;
    return find_word(TIME_UNITS, text + at, end - at, 1) != 0;
}

static int is_price(const u16 *text, int at, int length) {
    int next = at + 1;
    const Word *currency;
    if (!(get_flags(text[at]) & (CURRENCY | DIGIT))) return 0;
    if (next < length && text[next] == ' ') next++;
    if (get_flags(text[at]) & CURRENCY && has_flag(text, next, length, DIGIT)) return 1;
    if (!(get_flags(text[at]) & DIGIT)) return 0;
    currency = find_word(CURRENCIES, text + next, length - next, 0);
    return currency && !has_flag(text, next + currency->length, length, WORD);
}

static int classify_numbers(const u16 *text, int length) {
    int at, has_letter = 0;
    for (at = 0; at < length; at++) {
        if (is_price(text, at, length)) return PRICE;
        has_letter |= get_flags(text[at]) & LETTER;
    }
    for (at = 0; length <= settings->max_date_chars && at < length; at++) {
        if (is_month_before_day(text, at, length)) return DATE;
        if (get_flags(text[at]) & DIGIT && is_number_of_date(text, at, length)) return DATE;
    }
    return has_letter ? PLAIN : NUMBER;
}

static int is_sentence_end(u32 character) {
    const u32 *end = settings->sentence_ends;
    while (*end && *end != character) end++;
    return *end != 0;
}

static const byte *get_last(const byte *start, const byte *end) {
    do end--; while (end > start && is_continuation(*end));
    return end;
}

static int classify_short_line(const byte *start, const byte *end) {
    u16 text[MAX_LINE];
    int length = lower_text(start, end, text), first = 0, last = length, at, has_digit = 0;
    u32 character;
    if (length < 0) return UNKNOWN;
    while (first < last && get_flags(text[first]) & STRIPPED) first++;
    while (first < last && get_flags(text[last - 1]) & STRIPPED) last--;
    if (first == last) return SYMBOLS;
    if (find_word(FURNITURE_LINES, text + first, last - first, 1)) return FURNITURE;
    for (at = 0; at < length; at++) {
        byte flags = get_flags(text[at]);
        if (!(flags & (SIGN_START | DIGIT))) continue;
        if (flags & SIGN_START && find_word(COPYRIGHT_SIGNS, text + at, length - at, 0)) return COPYRIGHT;
        has_digit |= at >= first && at < last && flags & DIGIT;
    }
    if (has_digit && (at = classify_numbers(text, length)) != PLAIN) return at;
    if (has_listed_word(FURNITURE_WORDS, text + first, last - first)) return FURNITURE_WORD;
    character = get_char(get_last(start, end)); /* as it is; its lowercase was found */
    if (get_flags((u16)character) & COLON_SIGN) return COLON;
    return get_flags((u16)character) & END ? SENTENCE : PLAIN;
}

static int classify_long_line(const byte *start, const byte *end, int chars) {
    u16 text[MAX_LINE];
    if (chars <= settings->max_notice_chars) {
        int length = lower_text(start, end, text);
        if (length < 0) return UNKNOWN;
        if (has_listed_word(NOTICE_WORDS, text, length)) return NOTICE;
    }
    return is_sentence_end(get_char(get_last(start, end))) ? SENTENCE : PLAIN;
}

/* Return whether a heading may be of another kind than that of content. */
static int may_be_other_heading(const byte *start, const byte *end) {
    u16 text[MAX_LINE];
    int length = lower_text(start, end, text), at;
    if (length < 0) return 1;
    for (at = 0; at < length; at++) {
        if (text[at] >= OTHER_SCRIPTS && get_flags(text[at]) & WORD) return 1;
        if (starts_word(text, at) && find_word(HEADING_STARTS, text + at, length - at, 0)) return 1;
    }
    return 0;
}

static int find_line_end(const byte *start, const byte *end) {
    const byte *last;
    int commas = 0, code = 0;
    if (start == end) return 0;
    last = get_last(start, end);
    if (is_sentence_end(get_char(last))) code = 3;
    if (last > start && is_sentence_end(get_char(get_last(start, last)))) code = 3;
    for (end--; start < end; start++) {
        for (; end - start >= 8; start += 8) if (has_byte(start, '.') || (!commas && has_byte(start, ','))) break;
        for (last = start + 8; start < end && start < last; start++) {
            if (start[1] != ' ') continue;
            if (*start == '.') return code + 2;
            commas |= *start == ',';
        }
        start--;
    }
    return code + commas;
}

static void ask(State *state, int line, int is_heading) {
    state->page->questions[2 * state->questions++] = 2 * line + is_heading;
}

/* Search the title for a text of at least eight bytes, with the algorithm of Knuth, Morris and Pratt, since many lines
   may be almost in it. */
static int is_in_title(const Page *page, const byte *text, i64 length) {
    u16 borders[MAX_TITLE_BYTES]; /* of each start of the text: the length of its longest other start that ends it */
    const byte *at = page->title, *end = at + page->title_bytes;
    int found = 0, count = 1;
    if (length > page->title_bytes) return 0;
    while (end - at >= 8 && get_eight(at) != get_eight(text)) at++;
    if (end - at++ < 8) return 0; /* as for most texts */
    for (borders[0] = 0; count < length; borders[count++] = (u16)found) {
        while (found && text[found] != text[count]) found = borders[found - 1];
        found += text[found] == text[count];
    }
    for (found = 1; at < end; at++) {
        while (found && text[found] != *at) found = borders[found - 1];
        found += text[found] == *at;
        if (found == length) return 1;
    }
    return 0;
}

static int classify_share(i64 links, i64 chars) {
    if (!links) return 0;
    return links >= chars ? LINK_SHARES - 1 : (int)(1 + 4 * links / chars);
}

/* Say of the lines before the first h1 that they are there, except those in the title. */
static void mark_lines_before_heading(State *state) {
    const Page *page = state->page;
    int line;
    for (line = 0; line < state->lines; line++) {
        int level = settings->heading_levels[page->tags[page->line_boxes[line]]];
        if (level == 1 && state->texts[line + 1] - 1 > state->texts[line]) return;
        if (!state->places[line]) state->places[line] = 1;
    }
}

static void read_lines(State *state) {
    const Page *page = state->page;
    int line, place = 0;
    for (line = 0; line < state->lines; line++) {
        const byte *start = state->texts[line], *end = state->texts[line + 1] - 1;
        int box = page->line_boxes[line], chars = count_chars(start, end);
        int level = settings->heading_levels[page->tags[box]];
        int is_short = chars <= settings->max_short_chars;
        int kind = is_short ? classify_short_line(start, end) : classify_long_line(start, end, chars);
        state->kinds[line] = (byte)kind;
        if (kind == UNKNOWN) ask(state, line, 0);
        state->sections[line] = 0;
        if (level && chars && is_short) {
            state->sections[line] = CONTENT_HEADING;
            if (may_be_other_heading(start, end)) ask(state, line, 1);
        }
        state->line_ends[line] = (byte)find_line_end(start, end);
        state->sizes[line] = (byte)count_bits(page->chars[line], SIZES - 1);
        state->shares[line] = (byte)classify_share(page->link_chars[line], page->chars[line]);
        if (place == 2) place = AFTER_TITLE;
        if (!place && level == 1 && chars) place = 2;
        state->places[line] = (byte)place;
        if (chars >= settings->min_title_chars && chars <= page->title_chars && is_in_title(page, start, end - start))
            state->places[line] = IN_TITLE;
    }
    if (place) mark_lines_before_heading(state);
}

static void count_repeats(State *state) {
    int line, *others = state->others, *counts = state->table;
    clear_table(state);
    for (line = 0; line < state->lines; line++) {
        const byte *start = state->texts[line];
        size_t length = (size_t)(state->texts[line + 1] - start);
        size_t slot = find_slot(state, settings->hash(start, length, settings->secret));
        for (; counts[slot]; slot = get_next_slot(state, slot)) {
            int other = counts[slot] - 1;
            if ((size_t)(state->texts[other + 1] - state->texts[other]) == length
                && equals(state->texts[other], start, length))
                break;
        }
        if (!counts[slot]) {
            counts[slot] = line + 1;
            state->repeats[line] = 0;
        }
        others[line] = counts[slot] - 1;
        if (others[line] != line && state->repeats[others[line]] < 2) state->repeats[others[line]]++;
    }
    for (line = 0; line < state->lines; line++) state->repeats[line] = state->repeats[others[line]];
}

/* ---- Boxes ---- */

static int is_upper(byte each) { return each >= 'A' && each <= 'Z'; }
static int is_lower(byte each) { return each >= 'a' && each <= 'z'; }

static u64 find_word_bits(const byte *start, const byte *end) {
    u16 text[MAX_LINE];
    const Word *word;
    int length = 0, at;
    text[0] = 0;
    for (; start < end; start++) text[length++] = is_upper(*start) ? *start + 32 : *start;
    if ((word = find_word(PART_WORDS, text, length, 1))) return settings->word_bits[word - lists[PART_WORDS].words];
    for (at = 0; length >= settings->min_compound_chars && at < length; at++)
        if ((word = find_word(PARTS_OF_WORDS, text + at, length - at, 0)))
            return settings->part_bits[word - lists[PARTS_OF_WORDS].words];
    return 0;
}

/* Return the bits of the parts that the words of a name stand for. */
static u64 find_name_bits(const byte *at, const byte *end) {
    u64 bits = 0;
    if (end - at > settings->max_name_chars) end = skip_chars(at, end, settings->max_name_chars);
    while (at < end) {
        const byte *start = at;
        if (is_upper(*at) && at + 1 < end && !is_lower(at[1])) {
            while (at < end && is_upper(*at)) at++;
            if (at < end && is_lower(*at)) at--;
        } else if (is_upper(*at) || is_lower(*at)) {
            for (at++; at < end && is_lower(*at);) at++;
        } else {
            at++;
            continue;
        }
        bits |= find_word_bits(start, at);
    }
    return bits;
}

static int measure_boxes(State *state) {
    const Page *page = state->page;
    int box, line, lines = 0, *counts = state->counts;
    clear(counts, sizeof(int) * (size_t)state->boxes);
    for (box = 0; box < state->boxes; box++) {
        int parent = page->parents[box], end = page->box_ends[box];
        if (parent < 0 || parent > box || (parent == box && box) || end <= box || end > state->boxes) return 0;
        if (box && end > page->box_ends[parent]) return 0;
    }
    for (line = 0; line < state->lines; line++) {
        box = page->line_boxes[line];
        if (box < 0 || box >= state->boxes || page->chars[line] < 0 || page->link_chars[line] < 0) return 0;
        counts[box]++;
    }
    for (box = 0, line = 0; box < state->boxes; box++) {
        while (line < state->lines && page->line_boxes[line] < box) line++; /* until the first line of a later box */
        state->starts[box] = line;
        state->others[box] = lines; /* in all boxes before */
        lines += counts[box];
    }
    for (box = 0; box < state->boxes; box++) {
        int end = page->box_ends[box];
        state->ends[box] = state->starts[box] + (end < state->boxes ? state->others[end] : lines) - state->others[box];
        if (state->ends[box] > state->lines) return 0;
    }
    return 1;
}

static int is_filled(const State *state, int box) { return state->ends[box] > state->starts[box]; }

/* Number the distinct pairs of a tag and classes, and find the parts that the boxes are in. */
static void name_boxes(State *state) {
    const Page *page = state->page;
    int box, names = 0, *name_counts = state->counts;
    u64 *name_bits = (u64 *)(void *)state->scores;
    i64 all = state->chars_before[state->lines];
    clear_table(state);
    for (box = 0; box < state->boxes; box++) {
        const byte *classes = state->classes[box], *hints = state->hints[box];
        size_t length = (size_t)(state->classes[box + 1] - classes), slot;
        byte tag = page->tags[box];
        u64 bits;
        i64 chars;
        int other;
        state->masks[box] = 0;
        state->names[box] = state->codes[box] = 0;
        if (!is_filled(state, box)) continue;
        slot = find_slot(state, settings->hash(classes, length, settings->secret) + tag * ones);
        for (; (other = state->table[slot] - 1) >= 0; slot = get_next_slot(state, slot))
            if (page->tags[other] == tag && (size_t)(state->classes[other + 1] - state->classes[other]) == length
                && equals(state->classes[other], classes, length))
                break;
        if (other < 0) {
            state->table[slot] = box + 1;
            name_counts[names] = 0;
            name_bits[names] = settings->tag_bits[tag];
            if (settings->has_name[tag]) name_bits[names] |= find_name_bits(classes, classes + length - 1);
            state->names[box] = names++;
        } else {
            state->names[box] = state->names[other];
        }
        name_counts[state->names[box]]++;
        bits = name_bits[state->names[box]];
        if (settings->has_name[tag]) bits |= find_name_bits(hints, state->hints[box + 1] - 1);
        chars = state->chars_before[state->ends[box]] - state->chars_before[state->starts[box]];
        if (chars > all * settings->large_share) bits &= ~settings->furniture_bits;
        bits |= settings->flag_bits[page->flags[box] & 7];
        state->masks[box] = bits | (box ? state->masks[page->parents[box]] : 0);
    }
    for (box = 0; box < state->boxes; box++) {
        i64 chars, links;
        int count = state->ends[box] - state->starts[box];
        if (count <= 0) continue;
        chars = state->chars_before[state->ends[box]] - state->chars_before[state->starts[box]];
        links = state->links_before[state->ends[box]] - state->links_before[state->starts[box]];
        state->codes[box] = (byte)(count_bits(count, COUNTS - 1) * GROUP_LINKS
                                   + (links * 10 >= chars) + (links * 3 >= chars) + (links * 3 >= chars * 2));
        state->levels[box] = (byte)count_bits(name_counts[state->names[box]], COUNTS - 1); /* of siblings */
    }
}

static void find_items(State *state) {
    const Page *page = state->page;
    int box, *counts = state->counts, *others = state->others;
    clear_table(state);
    for (box = 0; box < state->boxes; box++) {
        int name = state->names[box], parent = page->parents[box], other;
        size_t slot;
        others[box] = -1;
        if (state->ends[box] - state->starts[box] < 2) continue;
        slot = find_slot(state, (u64)parent * 0x9E3779B97F4A7C15ull + (u64)name);
        for (; (other = state->table[slot] - 1) >= 0; slot = get_next_slot(state, slot))
            if (page->parents[other] == parent && state->names[other] == name) break;
        if (other < 0) {
            state->table[slot] = box + 1;
            counts[other = box] = 0;
        }
        others[box] = other;
        counts[other]++;
    }
    for (box = 0; box < state->boxes; box++) {
        int parent = page->parents[box], count = others[box] < 0 ? 0 : counts[others[box]];
        state->items[box] = state->item_codes[box] = 0;
        if (!is_filled(state, box)) continue;
        if (count > 2) {
            state->items[box] = box;
            state->item_codes[box] = (byte)(count_bits(count, ITEM_COUNTS) - 1);
        } else if (box) {
            state->items[box] = state->items[parent];
            state->item_codes[box] = state->item_codes[parent];
        }
    }
}

static int get_coarse(const State *state, int line) {
    return state->sizes[line] < 5 ? 0 : state->sizes[line] < 7 ? 1 : COARSE_SIZES - 1;
}

static void classify_items(State *state) {
    int line, *has_headline = state->counts;
    clear(has_headline, sizeof(int) * (size_t)state->boxes);
    for (line = 0; line < state->lines; line++)
        if (state->shares[line] == LINK_SHARES - 1 && get_coarse(state, line) > 0)
            has_headline[state->items[state->page->line_boxes[line]]] = 1;
    for (line = 0; line < state->lines; line++) {
        int item = state->items[state->page->line_boxes[line]];
        state->item_kinds[line] = item ? 1 + has_headline[item] : 0;
    }
}

/* Read a page; return how many questions Python must answer, or -1 if only Python can read it. */
int read_page(const Page *page, void *work) {
    Memory memory;
    State *state;
    int line;
    memory.base = (size_t)work;
    memory.used = 0;
    state = lay_out(&memory, 0, (int)page->box_count, (int)page->line_count);
    state->page = page;
    state->questions = 0;
    if (page->title_bytes > MAX_TITLE_BYTES || !measure_boxes(state)
        || !split(page->classes, page->class_bytes, state->boxes, state->classes)
        || !split(page->hints, page->hint_bytes, state->boxes, state->hints)
        || !split(page->texts, page->text_bytes, state->lines, state->texts))
        return -1;
    state->chars_before[0] = state->links_before[0] = 0;
    for (line = 0; line < state->lines; line++) {
        state->chars_before[line + 1] = state->chars_before[line] + page->chars[line];
        state->links_before[line + 1] = state->links_before[line] + page->link_chars[line];
    }
    read_lines(state);
    count_repeats(state);
    name_boxes(state);
    find_items(state);
    classify_items(state);
    return state->questions;
}

/* ---- Scores ---- */

/* The inverses of the numbers from 1 on. */
static const double inverses[] = {1.0, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5, 1.0 / 6, 1.0 / 7, 1.0 / 8, 1.0 / 9, 1.0 / 10,
                                  1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14};

/* Return the exponential of a number: that of the rest after powers of two, by its Taylor series. */
static double exponentiate(double value) {
    union { u64 bits; double number; } power;
    double rest, sum = 1;
    int exponent, term;
    if (value > 700) value = 700;
    if (value < -700) value = -700;
    exponent = (int)(value * 1.4426950408889634 + (value < 0 ? -0.5 : 0.5));
    rest = value - exponent * 6.93147180369123816490e-01 - exponent * 1.90821492927058770002e-10;
    for (term = 14; term--;) sum = 1 + sum * (rest * inverses[term]);
    power.bits = (u64)(exponent + 1023) << 52;
    return sum * power.number;
}

static double sum_bits(u64 mask, const double *weights) {
    double sum = 0;
    for (; mask; mask >>= 1, weights++) if (mask & 1) sum += *weights;
    return sum;
}

static void score_masks(State *state, const double *weights) {
    const Page *page = state->page;
    int box;
    for (box = 0; box < state->boxes; box++) {
        int parent = page->parents[box];
        if (box && state->masks[box] == state->masks[parent]) state->scores[box] = state->scores[parent];
        else state->scores[box] = is_filled(state, box) ? sum_bits(state->masks[box], weights) : 0;
    }
}

static void take_answers(State *state) {
    const int *question = state->page->questions, *end = question + 2 * state->questions;
    for (; question < end; question += 2)
        (is_odd(*question) ? state->sections : state->kinds)[*question / 2] = (byte)question[1];
}

/* Turn the kinds of headings into the features of sections. */
static void find_sections(State *state) {
    const Page *page = state->page;
    int line, kind = NO_HEADING, level = 9;
    for (line = 0; line < state->lines; line++) {
        int own = settings->heading_levels[page->tags[page->line_boxes[line]]], new = state->sections[line];
        if (!new) {
            state->sections[line] = (byte)(kind * 2);
            continue;
        }
        state->sections[line] = (byte)(new * 2 + 1);
        if (new > CONTENT_HEADING || kind <= CONTENT_HEADING || own <= level) {
            kind = new;
            level = own;
        }
    }
}

static int get_kind_code(const State *state, int line) {
    return state->kinds[line] * 2 + (state->page->link_chars[line] > 0);
}

static int get_size_code(const State *state, int line) {
    return state->sizes[line] * LINK_SHARES + state->shares[line];
}

static int get_position(const State *state, int line) {
    i64 all = state->chars_before[state->lines];
    return (int)(state->chars_before[line] * ((POSITIONS - 0.001) / (all > 1 ? all : 1)));
}

static int get_form(const State *state, int line) {
    return line < 0 || line >= state->lines ? 1 : get_coarse(state, line) * 2 + (state->shares[line] > 2);
}

static double score_line(const State *state, int line) {
    const Page *page = state->page;
    int box = page->line_boxes[line], outer = page->parents[box], second = page->parents[outer];
    int coarse = get_coarse(state, line), table;
    double sum = 0;
    int codes[14];
    codes[0] = get_size_code(state, line);
    codes[1] = settings->tag_codes[page->tags[box]] * COARSE_SIZES + coarse;
    codes[2] = state->line_ends[line];
    codes[3] = get_kind_code(state, line);
    codes[4] = state->repeats[line] * COARSE_SIZES + coarse;
    codes[5] = get_position(state, line);
    codes[6] = state->places[line];
    codes[7] = get_form(state, line - 1) * 2 * COARSE_SIZES + get_form(state, line + 1);
    codes[8] = state->codes[box];
    codes[9] = state->codes[outer];
    codes[10] = state->levels[box] * COARSE_SIZES + coarse;
    codes[11] = state->codes[second];
    codes[12] = state->sections[line] * COARSE_SIZES + coarse;
    codes[13] = (state->item_codes[box] * 3 + state->item_kinds[line]) * COARSE_SIZES + coarse;
    for (table = 0; table < 14; table++) sum += settings->weights[settings->offsets[table] + codes[table]];
    return sum;
}

static int find_page_type(const State *state, int signs) {
    const Page *page = state->page;
    const double *weights = settings->type_weights;
    double measures[2 * BITS], total = (double)state->chars_before[state->lines] + state->lines, items[3];
    double long_chars = 0, best = 0;
    int kinds[UNKNOWN + 1], line, box, bit, type, best_type = 0, count = settings->bits + settings->signs + 9;
    double *at = measures + settings->bits;
    clear(measures, sizeof measures);
    clear(kinds, sizeof kinds);
    clear(items, sizeof items);
    clear(state->inner, sizeof(double) * (size_t)state->boxes);
    for (line = 0; line < state->lines; line++) {
        double chars = page->chars[line] + 1.0;
        state->inner[page->line_boxes[line]] += chars;
        kinds[state->kinds[line]]++;
        items[state->item_kinds[line]] += chars;
        if (state->sizes[line] >= LONG_SIZE) long_chars += chars;
    }
    for (box = 0; box < state->boxes; box++) {
        u64 mask = state->inner[box] > 0 ? state->masks[box] : 0;
        for (bit = 0; mask; bit++, mask >>= 1) if (mask & 1) measures[bit] += state->inner[box];
    }
    for (bit = 0; bit < settings->bits; bit++) measures[bit] /= total;
    for (bit = 0; bit < settings->signs; bit++) *at++ = signs >> bit & 1;
    *at++ = long_chars / total;
    *at++ = (double)state->links_before[state->lines] / total;
    *at++ = state->lines < settings->many_lines ? (double)state->lines / settings->many_lines : 1;
    *at++ = (double)kinds[PRICE] / state->lines;
    *at++ = (double)kinds[DATE] / state->lines;
    *at++ = (double)kinds[NUMBER] / state->lines;
    *at++ = (double)kinds[SENTENCE] / state->lines;
    *at++ = items[2] / total;
    *at++ = items[1] / total;
    for (type = 0; type < settings->types; type++) {
        double score = 0;
        for (bit = 0; bit < count; bit++) score += weights[bit] * measures[bit];
        score += weights[count];
        weights += count + 1;
        if (!type || score > best) best = score, best_type = type;
    }
    return best_type;
}

/* Compute the probability of each line, from its own features, after the questions are answered; return the type of the
   page. signs: a bit for each sign in its records. */
int score_page(void *work, int signs, double *likely) {
    State *state = work;
    int line;
    take_answers(state);
    find_sections(state);
    score_masks(state, settings->bit_weights);
    for (line = 0; line < state->lines; line++) {
        double score = settings->intercept + state->scores[state->page->line_boxes[line]] + score_line(state, line);
        likely[line] = 1 / (1 + exponentiate(-score));
    }
    return find_page_type(state, signs);
}

/* ---- Context ---- */

static int classify(double likely) { return (int)(likely * LEVELS); }

static void find_regions(State *state) {
    double min_weight = settings->min_part_share * state->weights_before[state->lines];
    int box;
    for (box = 0; box < state->boxes; box++) {
        int parent = state->page->parents[box], start = state->starts[box], end = state->ends[box];
        double mass = state->before[end] - state->before[start];
        double weight = state->weights_before[end] - state->weights_before[start];
        state->levels[box] = (byte)classify(mass / largest(weight, 1));
        state->regions[box] = state->parts[box] = 0;
        if (!box || end <= start) continue;
        state->regions[box] = end - start >= settings->min_region_lines ? box : state->regions[parent];
        state->parts[box] = weight >= min_weight ? box : state->parts[parent];
    }
}

/* Number the groups of boxes with lines whose names, and those of the boxes around them, are equal. */
static void find_groups(State *state) {
    const Page *page = state->page;
    int line, groups = 0, box, *firsts = state->others;
    clear_table(state);
    for (box = 0; box < state->boxes; box++) state->groups[box] = -1;
    for (line = 0; line < state->lines; line++) {
        int name, outer_name, group;
        size_t slot;
        box = page->line_boxes[line];
        if (state->groups[box] < 0) {
            name = state->names[box];
            outer_name = state->names[page->parents[box]];
            slot = find_slot(state, (u64)outer_name * 0x9E3779B97F4A7C15ull + (u64)name);
            for (; (group = state->table[slot] - 1) >= 0; slot = get_next_slot(state, slot)) {
                int other = firsts[group];
                if (state->names[other] == name && state->names[page->parents[other]] == outer_name) break;
            }
            if (group < 0) {
                group = groups++;
                state->table[slot] = group + 1;
                firsts[group] = box;
                state->group_masses[group] = state->group_weights[group] = 0;
            }
            state->groups[box] = group;
        }
        state->group_masses[state->groups[box]] += state->masses[line];
        state->group_weights[state->groups[box]] += state->line_weights[line];
    }
}

static int classify_window(const State *state, int line, int radius) {
    int low = larger(line - radius, 0), high = smaller(line + radius + 1, state->lines);
    double mass = state->before[high] - state->before[low] - state->masses[line];
    double weight = state->weights_before[high] - state->weights_before[low] - state->line_weights[line];
    mass /= largest(weight, 1);
    return classify(mass < 0 ? 0 : mass > 1 ? 1 : mass);
}

static int find_core(const State *state) {
    double min_mass = settings->min_core_share * state->before[state->lines];
    int box = state->boxes - 1;
    while (box && !(state->before[state->ends[box]] - state->before[state->starts[box]] >= min_mass)) box--;
    return box;
}

typedef struct { int box, around, share; } Body;

static int find_largest(const double *values, int count) {
    int best = 0, at;
    for (at = 1; at < count; at++) if (values[at] > values[best]) best = at;
    return best;
}

static void find_body(State *state, Body *body) {
    const Page *page = state->page;
    int line, wide;
    double mass;
    clear(state->inner, sizeof(double) * (size_t)state->boxes);
    clear(state->wide, sizeof(double) * (size_t)state->boxes);
    for (line = 0; line < state->lines; line++) {
        int outer = page->parents[page->line_boxes[line]];
        if (state->sizes[line] < settings->min_paragraph_size) continue;
        state->inner[outer] += state->masses[line];
        state->wide[page->parents[outer]] += state->masses[line];
    }
    body->box = find_largest(state->inner, state->boxes);
    wide = find_largest(state->wide, state->boxes);
    mass = state->inner[body->box];
    if (state->wide[wide] > mass * settings->min_wider) {
        body->box = wide;
        mass = state->wide[wide];
    }
    body->share = (int)(mass / largest(state->before[state->lines], 1e-9) * QUARTERS);
    body->around = page->parents[body->box];
}

static int is_within(const State *state, int line, int box) {
    return line >= state->starts[box] && line < state->ends[box];
}

static int get_relation(const State *state, int line, const Body *body) {
    if (is_within(state, line, body->box)) return 0;
    if (is_within(state, line, body->around)) return 1;
    return line < state->starts[body->box] ? 2 : 3;
}

/* Compute the probability of each line from those of the lines and boxes around it. */
void score_context(void *work, const double *likely, int is_product, double *scores) {
    State *state = work;
    const Page *page = state->page;
    const double *weights = settings->context_weights;
    const int *offsets = settings->context_offsets;
    int line, core, page_level, lines = state->lines;
    double total;
    Body body;
    state->before[0] = state->weights_before[0] = 0;
    for (line = 0; line < lines; line++) {
        state->line_weights[line] = smaller(page->chars[line], settings->max_weight_chars) + 2.0;
        state->masses[line] = likely[line] * state->line_weights[line];
        state->before[line + 1] = state->before[line] + state->masses[line];
        state->weights_before[line + 1] = state->weights_before[line] + state->line_weights[line];
    }
    find_regions(state);
    find_groups(state);
    core = find_core(state);
    find_body(state, &body);
    total = largest(state->before[lines], 1e-9);
    page_level = (int)(state->before[lines] / state->weights_before[lines] * QUARTERS);
    if (is_product) score_masks(state, settings->product_bit_weights);
    for (line = 0; line < lines; line++) {
        int box = page->line_boxes[line], own = classify(likely[line]), own4 = own / 6, own8 = own / 3;
        int relation = get_relation(state, line, &body) + body.share * 4, group = state->groups[box], table;
        int group_level = classify(state->group_masses[group] / state->group_weights[group]);
        double sum = 0;
        int codes[19];
        codes[0] = own / 2;
        codes[1] = classify_window(state, line, settings->near_lines) / 2;
        codes[2] = classify_window(state, line, settings->wide_lines) / 2;
        codes[3] = state->levels[page->parents[box]] / 2;
        codes[4] = group_level / 2;
        codes[5] = ((line >= state->starts[core]) + (line >= state->ends[core])) * 4 + own4;
        codes[6] = line ? classify(likely[line - 1]) / 4 * 6 : 0;
        if (line + 1 < lines) codes[6] += classify(likely[line + 1]) / 4;
        codes[7] = page_level * 8 + own8;
        codes[8] = state->places[line] * 3 + own / 8;
        codes[9] = state->sizes[line] * 4 + own4;
        codes[10] = (int)(state->before[line] * (QUARTERS / total)) * 4 + own4;
        codes[11] = own8 * 8 + state->levels[state->regions[box]] / 3;
        codes[12] = group_level / 3 * 8 + state->levels[state->parts[box]] / 3;
        codes[13] = relation * 8 + own8;
        codes[14] = (relation * 3 + state->item_kinds[line]) * 3 + smaller(state->sizes[line] / 3, 2);
        codes[15] = is_product ? get_size_code(state, line) + 1 : 0;
        codes[16] = is_product ? get_kind_code(state, line) + 1 : 0;
        codes[17] = is_product ? get_position(state, line) + 1 : 0;
        codes[18] = is_product ? own / 2 + 1 : 0;
        for (table = 0; table < 19; table++) sum += weights[offsets[table] + codes[table]];
        if (is_product) sum += state->scores[box];
        scores[line] = 1 / (1 + exponentiate(-sum));
    }
}

/* ---- Choice, as main_content/choice.py has it ---- */

enum { BOILERPLATE = 1 }; /* of the flags of a box */
typedef struct {
    double min_confidence, fallback_share, heading_share, shared_odds, own_odds, menu_odds;
    double max_shared_share, max_link_share, min_group_lines, max_shared_gap;
} Odds;

static int contains(const u64 *sorted, size_t count, u64 value) {
    size_t first = 0, last = count;
    while (first < last) {
        size_t middle = first + (last - first) / 2;
        if (sorted[middle] == value) return 1;
        if (sorted[middle] < value) first = middle + 1;
        else last = middle;
    }
    return 0;
}

static void find_shared_lines(State *state, const u64 *shared, size_t count) {
    int line;
    for (line = 0; line < state->lines; line++) {
        const byte *text = state->texts[line];
        size_t length = (size_t)(state->texts[line + 1] - text) - 1;
        state->is_shared[line] = (byte)contains(shared, count, settings->hash(text, length, 0));
    }
}

static void find_doubtful_lines(State *state, const Odds *odds) {
    const Page *page = state->page;
    i64 *sums[4];
    int line, box, sum;
    sums[0] = state->box_lines, sums[1] = state->box_shared, sums[2] = state->box_chars, sums[3] = state->box_links;
    for (sum = 0; sum < 4; sum++) clear(sums[sum], sizeof(i64) * (size_t)state->boxes);
    for (line = 0; line < state->lines; line++) {
        box = page->line_boxes[line];
        state->box_lines[box]++;
        state->box_shared[box] += state->is_shared[line];
        state->box_chars[box] += page->chars[line];
        state->box_links[box] += page->link_chars[line];
    }
    for (box = state->boxes - 1; box > 0; box--)
        for (sum = 0; sum < 4; sum++) sums[sum][page->parents[box]] += sums[sum][box];
    for (box = 0; box < state->boxes; box++) {
        double lines = (double)state->box_lines[box], chars = (double)state->box_chars[box];
        byte *doubtful = &state->doubtful_boxes[box];
        if (page->flags[box] & BOILERPLATE) *doubtful = 1;
        else if (lines < odds->min_group_lines) *doubtful = box ? state->doubtful_boxes[page->parents[box]] : 0;
        else *doubtful = (double)state->box_shared[box] > odds->max_shared_share * lines
                         || (double)state->box_links[box] > odds->max_link_share * chars;
    }
    for (line = 0; line < state->lines; line++)
        state->is_doubtful[line] = state->doubtful_boxes[page->line_boxes[line]];
}

static void multiply_odds(const State *state, double *likely) {
    int line;
    for (line = 0; line < state->lines; line++) {
        double product = likely[line] * state->odds[line];
        likely[line] = product / (1 - likely[line] + product);
    }
}

/* Sort the lines by their probabilities, the highest first; equal ones stay in order. */
static void sort_lines(State *state, const double *likely) {
    int *from = state->order, *to = state->merged, line, width, low, lines = state->lines;
    for (line = 0; line < lines; line++) from[line] = line;
    for (width = 1; width < lines; width *= 2) {
        int *other = from;
        for (low = 0; low < lines; low += 2 * width) {
            int middle = smaller(low + width, lines), high = smaller(middle + width, lines);
            int left = low, right = middle, at;
            for (at = low; at < high; at++) {
                int is_left = right >= high || (left < middle && likely[from[left]] >= likely[from[right]]);
                to[at] = from[is_left ? left++ : right++];
            }
        }
        from = to;
        to = other;
    }
    state->order = from;
    state->merged = to;
}

/* Return the threshold that maximizes the expected F1 measure. */
static double find_threshold(State *state, const double *likely, double *measure) {
    const int *chars = state->page->chars;
    double found = 0, all = 0, count = 0, best = -1;
    int at, best_at = 0;
    sort_lines(state, likely);
    for (at = 0; at < state->lines; at++) all += likely[state->order[at]] * chars[state->order[at]];
    for (at = 0; at < state->lines; at++) {
        double value;
        int line = state->order[at];
        found += likely[line] * chars[line];
        count += chars[line];
        value = 2 * found / (count + largest(all, 1e-9));
        if (value > best) best = value, best_at = at;
    }
    *measure = best > 1 ? 1 : best;
    return likely[state->order[best_at]];
}

static void fill_gaps(const State *state, byte *chosen, int max_gap) {
    int run = max_gap + 1, line, gap; /* run: lines since the last chosen one */
    for (line = 0; line < state->lines; line++) {
        if (chosen[line]) {
            if (run <= max_gap) for (gap = 1; gap <= run; gap++) chosen[line - gap] = 1;
            run = 0;
        } else {
            run = state->is_shared[line] && !state->is_doubtful[line] ? run + 1 : max_gap + 1;
        }
    }
}

/* Choose the lines of a page that is read, and whose questions are answered; write their numbers, and return how many
   there are. signs: as for `score_page`.  shared: the hashes of lines that the domain's pages share, in order.
   is_known: whether many of its pages are known.  product: the number of this type of page.  type: that of the page. */
int choose_lines(void *work, int signs, const u64 *shared, size_t shared_count, int is_known, const Odds *odds,
                 int product, int *lines, double *confidence, int *type) {
    State *state = work;
    const Page *page = state->page;
    double own_odds = is_known ? odds->own_odds : 1, threshold;
    byte *chosen = state->sizes; /* no longer needed then */
    int line, count = 0;
    *type = score_page(work, signs, state->likely);
    if (shared_count) {
        find_shared_lines(state, shared, shared_count);
        find_doubtful_lines(state, odds);
    }
    for (line = 0; line < state->lines; line++) {
        int is_menu = page->flags[page->line_boxes[line]] & BOILERPLATE && 2 * page->link_chars[line] > page->chars[line];
        state->odds[line] = is_menu ? odds->menu_odds : 1;
        if (!shared_count) continue;
        if (state->is_shared[line]) state->odds[line] *= odds->shared_odds;
        else if (!state->is_doubtful[line]) state->odds[line] *= own_odds;
    }
    multiply_odds(state, state->likely);
    score_context(work, state->likely, *type == product, state->changed);
    multiply_odds(state, state->changed);
    threshold = find_threshold(state, state->changed, confidence);
    if (*confidence < odds->min_confidence) threshold *= odds->fallback_share;
    for (line = 0; line < state->lines; line++) chosen[line] = state->changed[line] >= threshold;
    if (shared_count) fill_gaps(state, chosen, (int)odds->max_shared_gap);
    for (line = state->lines - 2; line >= 0; line--)
        if (!chosen[line] && chosen[line + 1] && state->changed[line] >= threshold * odds->heading_share)
            chosen[line] = settings->heading_levels[page->tags[page->line_boxes[line]]] > 0;
    for (line = 0; line < state->lines; line++)
        if (chosen[line] && state->texts[line + 1] - state->texts[line] > 1) lines[count++] = line;
    return count;
}

/* ---- Loading ---- */

static int load_list(int number) {
    Words *words = &lists[number];
    const u16 *at = settings->lists[number];
    int bucket, count = 0;
    for (bucket = 0; bucket < BUCKETS; bucket++) {
        u64 lengths = 0;
        words->first[bucket] = count;
        while (*at && *at % BUCKETS == bucket) {
            const u16 *start = at;
            if (count == MAX_LIST) return 0;
            while (*at) at++;
            words->words[count].start = start;
            words->words[count].length = (int)(at - start);
            lengths |= 1ull << smaller((int)(at - start), BITS - 1);
            count++;
            at++;
        }
        words->lengths[bucket] = lengths;
    }
    words->first[BUCKETS] = words->count = count;
    return !*at;
}

/* Take what Python defines, which it keeps as long as this library is used; return whether it fits. Another thread may
   score a page meanwhile, so no value changes in between. */
int load_content(const Settings *given) {
    int number;
    settings = given;
    if (given->max_short_chars > MAX_LINE || given->max_notice_chars > MAX_LINE) return 0;
    if (given->max_name_chars > MAX_LINE || given->min_title_chars < 8) return 0;
    if (given->bits > BITS || given->bits + given->signs + 9 > 2 * BITS) return 0;
    for (number = 0; number < LISTS; number++) if (!load_list(number)) return 0;
    return 1;
}
