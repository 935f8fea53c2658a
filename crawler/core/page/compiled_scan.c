/* The walk of scan.py over the tree of a page, its result as plain buffers, the texts made of it, and two loops over the
   source of a page.

   scan.py is the reference, and its names are used here. compiled_scan.py loads this file and makes a PageScan of the
   buffers, or only asks for the texts. The file stands alone: it needs no header and no library. What it calls is in `Functions`, which Python
   fills with the addresses of lexbor's functions in the selectolax wheel; no layout of a lexbor structure is known
   here. Any C compiler can compile it; see scripts/compile_reader.py.

   Trees may be hostile. Nothing here recurses. All buffers grow in `reserve`; if memory runs out, it sets `failed`, the
   walk ends, and Python raises MemoryError. All texts are valid UTF-8 without NULs between them, because lexbor got
   valid UTF-8 and replaces NULs. */

typedef __SIZE_TYPE__ size_t;
typedef unsigned char byte;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef void Node;
typedef void Attribute;

enum { ELEMENT_NODE = 1, TEXT_NODE = 3, COMMENT_NODE = 8 };

typedef struct {
    void *(*realloc)(void *, size_t);
    void *(*free)(void *);
    Node *(*get_child)(Node *);
    Node *(*get_next)(Node *);
    Node *(*get_parent)(Node *);
    int (*get_type)(Node *);
    size_t (*get_tag_id)(Node *);
    const byte *(*get_tag)(Node *, size_t *);
    Attribute *(*get_first_attribute)(Node *);
    Attribute *(*get_next_attribute)(Attribute *);
    const byte *(*get_name)(Attribute *, size_t *);
    const byte *(*get_value)(Attribute *, size_t *);
    byte *(*get_text)(Node *, size_t *);
    void *(*free_text)(Node *document, byte *);
    u64 (*hash)(const void *, size_t);
} Functions;

/* Of scan.py and page_cost.py. Lists of names: each name ends with a NUL, and the list with an empty name. */
typedef struct {
    const Functions *functions;
    const byte *tags, *root_ids, *boilerplate_roles, *placeholder_classes, *opened_parts, *link_marks;
    const u32 *tag_flags; /* the flags below; the characters that mark the start and end in the two highest bytes */
    const byte *cost_tags;
    const u32 *cost_flags;
    int max_root_chars, min_message_words, max_message_chars, max_data_chars;
    int tree_steps, formatted_nodes, many_attributes_chars;
    const u32 *unspaced; /* of text_words.py: the first and last characters of ranges, and a zero */
    const u16 *lower; /* of word characters, the lowercase or UNKNOWN; 0 for other characters */
} Settings;

enum { BLOCK = 1, HIDDEN = 2, BOILERPLATE_TAG = 4, CONTENT_TAG = 8, PREFORMATTED_TAG = 16 };
enum { FILLED = 32, FILLED_WITH_ID = 64 };
enum { BOILERPLATE = 1, CONTENT = 2, PREFORMATTED = 4 };
enum { PASSWORD_FIELD = 1, EMPTY_ROOT = 2, NOSCRIPT_MESSAGE = 4, PLACEHOLDER = 8 };
enum { STARTS_LINE = 1, HAS_DIGIT = 2 }; /* the marks of a word */
enum { LINK, TRANSLATION, IMAGE };
enum { TITLE_RECORD, META_RECORD, LINK_RECORD, IMAGE_RECORD, SCRIPT_RECORD, BLANK_RECORD };
enum { FORMATTING = 1, SHALLOW = 2, RAW = 4, FOREIGN = 8 };

/* The tags that the walk treats in a way of their own, and the attributes that it reads. */
#define TAGS(X) X(A, "a") X(AREA, "area") X(BASE, "base") X(BODY, "body") X(BR, "br") X(CODE, "code") \
    X(FRAME, "frame") X(HEADER, "header") X(IFRAME, "iframe") X(IMG, "img") X(INPUT, "input") X(LINK_TAG, "link") \
    X(META, "meta") X(NOSCRIPT, "noscript") X(SCRIPT, "script") X(SVG, "svg") X(TITLE_TAG, "title")
#define ATTRIBUTES(X) X(ID, "id") X(ROLE, "role") X(ITEMPROP, "itemprop") X(ITEMTYPE, "itemtype") X(ALT, "alt") \
    X(ARIA_BUSY, "aria-busy") X(ARIA_LABEL, "aria-label") X(CLASS, "class") X(CONTENT_VALUE, "content") X(HIDDEN_VALUE, "hidden") \
    X(HREF, "href") X(HREFLANG, "hreflang") X(HTTP_EQUIV, "http-equiv") X(LANG, "lang") X(NAME, "name") \
    X(NG_CLOAK, "ng-cloak") X(PROPERTY, "property") X(REL, "rel") X(SRC, "src") X(STYLE, "style") X(TITLE, "title") X(TYPE, "type") \
    X(V_CLOAK, "v-cloak") X(XML_LANG, "xml:lang")
#define AS_NUMBER(number, name) number,
#define AS_NAME(number, name) {name, sizeof name - 1},

typedef struct { const char *start; size_t length; } Name;
enum { OTHER_TAG, TAGS(AS_NUMBER) KINDS_OF_TAG };
enum { ATTRIBUTES(AS_NUMBER) KINDS_OF_ATTRIBUTE };
static const Name special_tags[] = {{"", 0}, TAGS(AS_NAME)};
static const Name attribute_names[] = {ATTRIBUTES(AS_NAME)};

typedef struct { const byte *start, *end; } Text;
static const Text no_text;
typedef struct { u64 value; } __attribute__((packed)) Word; /* eight bytes at any address */
typedef struct { u32 present; Text values[KINDS_OF_ATTRIBUTE]; } Attributes;
typedef struct { Text name; u32 flags; int special; } Tag;
typedef struct { int anchor; byte start, end; } Mark; /* anchor: the number of a link's anchor, or -1 */
typedef struct { byte *data; size_t length, size; } Buffer;

/* The buffers of a result, in the order of compiled_scan.py. Each string ends with a NUL. */
enum {
    BOX_TAGS, BOX_FLAGS, FOLLOWED, RECORD_KINDS, /* bytes */
    BOX_PARENTS, BOX_ENDS, LINE_BOXES, LINE_CHARS, LINE_LINK_CHARS, POINTERS, /* integers; of a pointer, four */
    BOX_CLASSES, BOX_HINTS, TEXTS, MARKED, ANCHORS, RECORD_VALUES, BASE_VALUE, LANGUAGE, /* strings */
    LOCAL, /* for each anchor, whether it is a part of the page */
    SCRIPTS, /* the texts of inline scripts */
    /* What `join_texts`, `digest_words`, `join_content` and `find_data_paths` make of these: */
    WHOLE, MAIN, RESTORED, SHAPE, LOWER, HASHES, MARKS, PERMALINKS, READING, PATHS,
    BUFFERS
};
typedef struct { Buffer buffers[BUFFERS]; size_t signs, failed, chars; } Scan;

typedef struct {
    int depth, box, own_box, root_chars, root_anchors;
    byte is_hidden, is_in_link, is_watched, is_in_noscript, is_in_svg, is_in_script, has_mark;
} Element;

typedef struct { Node *const *sorted; size_t count; } Nodes;

typedef struct {
    Scan *scan;
    Buffer *buffers, elements, open_marks;
    Nodes ignored, watched;
    int with_noscript;
    Node *document;
    /* The line that is being collected: */
    int box;
    size_t text_start, marked_start;
    int has_gap; /* whether whitespace comes before the next word of the text */
    int has_space; /* the same for the marked line */
    int has_control; /* whether the text has characters that are not in the marked line */
    int chars, link_chars, line_pointers, pending;
    /* Of the page: */
    int all_chars, data_chars_left, titles, is_in_body;
    int message_chars, message_words, message_gap;
} Walker;

/* Kinds of bytes. LEAD: it may be the first byte of a space that is not ASCII. */
enum { NUL, CONTROL, PLAIN, LEAD, SPACE };
static byte kinds[256];
enum { MAX_TAGS = 200, MAX_TAG_ID = 512 };
static Tag tags[MAX_TAGS]; /* the first one is that of all other elements */
static int tag_count;
static byte tag_numbers[MAX_TAG_ID]; /* of tags by id, plus 1; 0 if not looked up yet */
static const Functions *call;
static const Settings *settings;

/* Assignments of large structures would call memcpy, which is in a library. */
static void clear(void *to, size_t length) { while (length--) ((byte *)to)[length] = 0; }

/* ---- Texts ---- */

static int equals(Text text, const void *other, size_t length) {
    const byte *at = other;
    if ((size_t)(text.end - text.start) != length) return 0;
    while (text.start < text.end) if (*text.start++ != *at++) return 0;
    return 1;
}

static Text get_name_at(const byte *list) {
    Text name;
    name.start = name.end = list;
    while (*name.end) name.end++;
    return name;
}

static byte lower(byte letter) { return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter; }

/* Return whether a text is in a list of names, in lowercase or, if `is_any_case`, in any case. */
static int is_one_of(Text text, const byte *list, int is_any_case) {
    Text name;
    for (name = get_name_at(list); name.start < name.end; name = get_name_at(name.end + 1)) {
        const byte *at = text.start;
        if (text.end - text.start != name.end - name.start) continue;
        while (at < text.end && *name.start == (is_any_case ? lower(*at) : *at)) at++, name.start++;
        if (at == text.end) return 1;
    }
    return 0;
}

static int get_long_space_length(const byte *at, const byte *end) {
    int second = at + 1 < end ? at[1] : 0, third = at + 2 < end ? at[2] : 0;
    if (*at == 0xC2) return second == 0x85 || second == 0xA0 ? 2 : 0;
    if (*at == 0xE1) return second == 0x9A && third == 0x80 ? 3 : 0;
    if (*at == 0xE3) return second == 0x80 && third == 0x80 ? 3 : 0;
    if (second == 0x81) return third == 0x9F ? 3 : 0;
    if (second != 0x80) return 0;
    return (third >= 0x80 && third <= 0x8A) || third == 0xA8 || third == 0xA9 || third == 0xAF ? 3 : 0;
}

/* Return the length of the whitespace character at a place as str.isspace() knows it, or 0. */
static inline int get_space_length(const byte *at, const byte *end) {
    return kinds[*at] < LEAD ? 0 : kinds[*at] == SPACE ? 1 : get_long_space_length(at, end);
}

static const byte *skip_spaces(Text text) {
    int length;
    while (text.start < text.end && (length = get_space_length(text.start, text.end))) text.start += length;
    return text.start;
}

static int is_blank(Text text) { return skip_spaces(text) == text.end; }

static int is_html_space(byte each) { return kinds[each] == SPACE && each != '\v' && (each < 28 || each == ' '); }

static int is_continuation(byte each) { return (each & 0xC0) == 0x80; }

static Text strip_end(Text text) {
    while (text.start < text.end) {
        const byte *last = text.end - 1;
        while (last > text.start && is_continuation(*last)) last--;
        if (!get_space_length(last, text.end)) break;
        text.end = last;
    }
    return text;
}

static Text strip(Text text) {
    text.start = skip_spaces(text);
    return strip_end(text);
}

/* Take the next word of a text; return whether there is one. */
static int take_word(Text *text, Text *word) {
    const byte *at = text->start = skip_spaces(*text);
    while (at < text->end && !get_space_length(at, text->end)) at++;
    word->start = text->start;
    text->start = word->end = at;
    return word->start < word->end;
}

static int count_word_chars(Text text) {
    int count = 0, length;
    while (text.start < text.end) {
        if (!(length = get_space_length(text.start, text.end))) count += !is_continuation(*text.start);
        text.start += length ? length : 1;
    }
    return count;
}

static int has_token(Text text, const byte *list) {
    Text word;
    while (take_word(&text, &word)) if (is_one_of(word, list, 1)) return 1;
    return 0;
}

static int count_chars(Text text) {
    int count = 0;
    for (; text.end - text.start >= 8; text.start += 8) { /* sets a bit for each continuation byte */
        u64 word = ((const Word *)(const void *)text.start)->value;
        count += 8 - (int)(((word >> 7 & ~word >> 6 & 0x0101010101010101ull) * 0x0101010101010101ull) >> 56);
    }
    while (text.start < text.end) count += !is_continuation(*text.start++);
    return count;
}

static int count_spaces(Text text) {
    const u64 ones = 0x0101010101010101ull, low = ones * 0x7F;
    int count = 0;
    for (; text.end - text.start >= 8; text.start += 8) {
        u64 word = ((const Word *)(const void *)text.start)->value ^ ones * ' ';
        count += (int)((~(((word & low) + low) | word | low) >> 7) * ones >> 56);
    }
    while (text.start < text.end) count += *text.start++ == ' ';
    return count;
}

static Text take_chars(Text text, int count) {
    const byte *at = text.start;
    if (text.end - text.start <= count) return text;
    while (at < text.end && (count -= !is_continuation(*at)) >= 0) at++;
    text.end = at;
    return text;
}

static const byte *find_byte(Text text, byte value) {
    const u64 ones = 0x0101010101010101ull;
    for (; text.end - text.start >= 8; text.start += 8) {
        u64 word = ((const Word *)(const void *)text.start)->value ^ ones * value;
        if ((word - ones) & ~word & ones << 7) break; /* one of the eight bytes is zero */
    }
    while (text.start < text.end && *text.start != value) text.start++;
    return text.start < text.end ? text.start : 0;
}

/* ---- Buffers ---- */

/* Return where a number of bytes can be appended; NULL if memory runs out. */
static byte *reserve(Walker *walker, Buffer *buffer, size_t more) {
    size_t needed = buffer->length + more, size = buffer->size ? buffer->size : 256;
    if (needed > buffer->size) {
        byte *data;
        while (size < needed) size *= 2;
        data = size <= 0x7FFFFFFF ? call->realloc(buffer->data, size) : 0;
        if (!data) {
            walker->scan->failed = 1;
            return 0;
        }
        buffer->data = data;
        buffer->size = size;
    }
    return buffer->data + buffer->length;
}

static void add_byte(Walker *walker, int number, byte value) {
    byte *to = reserve(walker, &walker->buffers[number], 1);
    if (!to) return;
    *to = value;
    walker->buffers[number].length++;
}

static void add_integer(Walker *walker, int number, int value) {
    byte *to = reserve(walker, &walker->buffers[number], sizeof value);
    if (!to) return;
    *(int *)(void *)to = value;
    walker->buffers[number].length += sizeof value;
}

/* Append a text without the characters of the kinds up to `dropped`. */
static void add_text_without(Walker *walker, int number, Text text, int dropped) {
    byte *to = reserve(walker, &walker->buffers[number], (size_t)(text.end - text.start));
    if (!to) return;
    for (; text.start < text.end; text.start++) if (kinds[*text.start] > dropped) *to++ = *text.start;
    walker->buffers[number].length = (size_t)(to - walker->buffers[number].data);
}

static void add_string(Walker *walker, int number, Text text) {
    Buffer *buffer = &walker->buffers[number];
    byte *to = reserve(walker, buffer, (size_t)(text.end - text.start) + 1);
    if (!to) return;
    for (; text.end - text.start >= 8; text.start += 8, to += 8)
        ((Word *)(void *)to)->value = ((const Word *)(const void *)text.start)->value;
    while (text.start < text.end) *to++ = *text.start++;
    *to++ = 0;
    buffer->length = (size_t)(to - buffer->data);
}

#if defined __GNUC__ && !defined __TINYC__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOWEST_FIRST /* the first of eight bytes is the lowest one of a number */
#endif

/* Append words, separated by single spaces, to what is in a buffer from `start` on. has_gap: whether whitespace comes
   before the text. Return whether it ends with whitespace. */
static int add_words(Walker *walker, int number, size_t start, Text text, int dropped, int has_gap) {
    const u64 ones = 0x0101010101010101ull;
    Buffer *buffer = &walker->buffers[number];
    byte *to = reserve(walker, buffer, (size_t)(text.end - text.start) + 1), *first;
    const byte *at = text.start, *start_at;
    if (!to) return 0;
    first = buffer->data + start;
    while (at < text.end) {
        int length = get_space_length(at, text.end);
        walker->has_control |= kinds[*at] <= CONTROL;
        if (length || kinds[*at] <= dropped) {
            has_gap |= length > 0;
            at += length ? length : 1;
            continue;
        }
        if (has_gap && to > first) *to++ = ' ';
        has_gap = 0;
#ifdef LOWEST_FIRST
        for (start_at = at; text.end - at >= 8;) { /* copies eight bytes, of which those before a special one count */
            u64 word = ((const Word *)(const void *)at)->value, special = ((word - ones * 33) | word) & ones << 7;
            ((Word *)(void *)to)->value = word;
            length = special ? __builtin_ctzll(special) / 8 : 8;
            to += length;
            at += length;
            if (special) break;
        }
        if (at > start_at) continue;
#endif
        do *to++ = *at++; while (at < text.end && kinds[*at] == PLAIN);
    }
    buffer->length = (size_t)(to - buffer->data);
    return has_gap;
}

static int get_integer_count(Walker *walker, int number) { return (int)(walker->buffers[number].length / sizeof(int)); }
static int get_box_count(Walker *walker) { return (int)walker->buffers[BOX_TAGS].length; }
static int get_anchor_count(Walker *walker) { return (int)walker->buffers[FOLLOWED].length; }
static int get_mark_count(Walker *walker) { return (int)(walker->open_marks.length / sizeof(Mark)); }
static Mark *get_mark(Walker *walker, int at) { return (Mark *)(void *)walker->open_marks.data + at; }

/* ---- Attributes and tags ---- */

static void read_attributes(Node *node, Attributes *attributes) {
    Attribute *attribute = call->get_first_attribute(node);
    attributes->present = 0;
    for (; attribute; attribute = call->get_next_attribute(attribute)) {
        Text name, value;
        size_t length = 0;
        int at;
        name.start = call->get_name(attribute, &length);
        name.end = name.start + length;
        for (at = 0; at < KINDS_OF_ATTRIBUTE; at++) {
            if (attribute_names[at].length != length || !equals(name, attribute_names[at].start, length)) continue;
            length = 0;
            value.start = call->get_value(attribute, &length);
            if (!value.start) value.start = (const byte *)"", length = 0;
            value.end = value.start + length;
            attributes->present |= 1u << at;
            attributes->values[at] = value;
            break;
        }
    }
}

static int has(const Attributes *attributes, int name) { return attributes->present >> name & 1; }

static Text get(const Attributes *attributes, int name) {
    return has(attributes, name) ? attributes->values[name] : no_text;
}
static int is_filled(Text text) { return text.start < text.end; }

/* Skip a word in any case, and then ASCII whitespace; return NULL if the word is not there. */
static const byte *skip_word(const byte *at, const byte *end, const char *word) {
    while (*word) if (at == end || lower(*at++) != (byte)*word++) return 0;
    while (at < end && (*at == ' ' || (*at >= '\t' && *at <= '\r'))) at++;
    return at;
}

static int has_opened_part(Text text) {
    Text part;
    for (; is_filled(text); text.start++)
        for (part = get_name_at(settings->opened_parts); is_filled(part); part = get_name_at(part.end + 1))
            if (skip_word(text.start, text.end, (const char *)part.start)) return 1;
    return 0;
}

/* Return whether a hidden element holds text for readers: scripts, readers or searches will show it. */
static int is_shown_later(const Attributes *attributes) {
    Text id = get(attributes, ID);
    return has_opened_part(get(attributes, CLASS)) || has_opened_part(id) || has_opened_part(get(attributes, ROLE))
        || (id.end - id.start > 1 && id.start[0] == 'S' && id.start[1] == ':')
        || is_one_of(get(attributes, HIDDEN_VALUE), (const byte *)"until-found\0", 1);
}

static int is_hidden_by_attributes(const Attributes *attributes) {
    Text style = get(attributes, STYLE);
    int is_hidden = has(attributes, HIDDEN_VALUE);
    for (; !is_hidden && style.start < style.end; style.start++) {
        const byte *at = skip_word(style.start, style.end, "display");
        is_hidden = at && (at = skip_word(at, style.end, ":")) && skip_word(at, style.end, "none");
    }
    return is_hidden && !is_shown_later(attributes);
}

/* Return whether an element says that it is not filled yet. */
static int is_placeholder(const Attributes *attributes) {
    Text classes = get(attributes, CLASS), name;
    if (has(attributes, V_CLOAK) || has(attributes, NG_CLOAK)) return 1;
    if (has(attributes, ARIA_BUSY) && is_one_of(get(attributes, ARIA_BUSY), (const byte *)"true\0", 1)) return 1;
    for (; classes.start < classes.end; classes.start++) {
        if (*classes.start != 's') continue;
        for (name = get_name_at(settings->placeholder_classes); is_filled(name); name = get_name_at(name.end + 1)) {
            Text start = {classes.start, classes.start + (name.end - name.start)};
            if (start.end <= classes.end && equals(start, name.start, (size_t)(name.end - name.start))) return 1;
        }
    }
    return 0;
}

static int look_up_tag(Node *node) {
    Text name;
    size_t length = 0;
    int number;
    name.start = call->get_tag(node, &length);
    name.end = name.start + length;
    for (number = tag_count - 1; number > 0; number--)
        if (equals(tags[number].name, name.start, length)) return number;
    return 0;
}

static const Tag *find_tag(Node *node) {
    size_t id = call->get_tag_id(node);
    if (id >= MAX_TAG_ID) return &tags[look_up_tag(node)];
    if (!tag_numbers[id]) tag_numbers[id] = (byte)(look_up_tag(node) + 1);
    return &tags[tag_numbers[id] - 1];
}

static int contains(Nodes nodes, Node *node) {
    size_t first = 0, last = nodes.count;
    while (first < last) {
        size_t middle = first + (last - first) / 2;
        if (nodes.sorted[middle] == node) return 1;
        if (nodes.sorted[middle] < node) first = middle + 1;
        else last = middle;
    }
    return 0;
}

/* ---- Lines ---- */

static void flush(Walker *walker) {
    Buffer *buffers = walker->buffers;
    int at, pointers = get_integer_count(walker, POINTERS);
    if (buffers[TEXTS].length > walker->text_start || pointers > walker->line_pointers) {
        for (at = get_mark_count(walker) - walker->pending; at-- > 0;)
            add_byte(walker, MARKED, get_mark(walker, at)->end);
        add_integer(walker, LINE_BOXES, walker->box > 0 ? walker->box : 0);
        add_byte(walker, TEXTS, 0);
        add_byte(walker, MARKED, 0);
        add_integer(walker, LINE_CHARS, walker->chars);
        walker->scan->chars += (size_t)walker->chars;
        add_integer(walker, LINE_LINK_CHARS, walker->link_chars);
        walker->text_start = buffers[TEXTS].length;
        walker->marked_start = buffers[MARKED].length;
    }
    buffers[TEXTS].length = walker->text_start;
    buffers[MARKED].length = walker->marked_start;
    walker->has_gap = walker->has_space = walker->chars = walker->link_chars = 0;
    walker->pending = get_mark_count(walker);
    walker->line_pointers = pointers;
}

static void add_number(Walker *walker, int buffer, int number) {
    int divisor = 1;
    while (number / divisor >= 10) divisor *= 10;
    for (; divisor; divisor /= 10) add_byte(walker, buffer, (byte)('0' + number / divisor % 10));
}

static void start_marks(Walker *walker) {
    for (; walker->pending; walker->pending--) {
        const Mark *mark = get_mark(walker, get_mark_count(walker) - walker->pending);
        add_byte(walker, MARKED, mark->start);
        if (mark->anchor < 0) continue;
        add_number(walker, MARKED, mark->anchor);
        add_byte(walker, MARKED, settings->link_marks[1]);
    }
}

/* Add text to the marked line, with whitespace collapsed: before the marks that start, after those that end. */
static void add_marked_words(Walker *walker, Text text) {
    int length;
    while (text.start < text.end && kinds[*text.start] <= CONTROL) text.start++;
    if (text.start == text.end) return;
    walker->has_space |= get_space_length(text.start, text.end) > 0;
    if (walker->has_space && walker->buffers[MARKED].length > walker->marked_start) add_byte(walker, MARKED, ' ');
    while (text.start < text.end) {
        length = get_space_length(text.start, text.end);
        if (!length && kinds[*text.start] > CONTROL) break;
        text.start += length ? length : 1;
    }
    walker->has_space = 1;
    if (text.start == text.end) return;
    start_marks(walker);
    walker->has_space = add_words(walker, MARKED, walker->buffers[MARKED].length, text, CONTROL, 0);
}

/* Do the same with text whose whitespace is collapsed, and that has no control characters. */
static void add_collapsed_words(Walker *walker, Text words, int starts_with_space, int ends_with_space) {
    walker->has_space |= starts_with_space;
    if (walker->has_space && walker->buffers[MARKED].length > walker->marked_start) add_byte(walker, MARKED, ' ');
    start_marks(walker);
    add_string(walker, MARKED, words);
    if (!walker->scan->failed) walker->buffers[MARKED].length--; /* without the NUL */
    walker->has_space = ends_with_space;
}

/* Count the words of the message for readers without scripts, in its first characters. */
static void add_message(Walker *walker, Text text) {
    text = take_chars(text, settings->max_message_chars - walker->message_chars);
    walker->message_chars += count_chars(text);
    while (text.start < text.end) {
        int length = get_space_length(text.start, text.end);
        if (!length) walker->message_words += walker->message_gap;
        walker->message_gap = length > 0;
        text.start += length ? length : 1;
    }
}

static void add_text(Walker *walker, Text text, const Element *element) {
    int is_collected = !element->is_hidden && element->is_watched, chars;
    int is_current = is_collected && element->box == walker->box;
    int is_preformatted = walker->buffers[BOX_FLAGS].data[element->box] & PREFORMATTED;
    Buffer *texts = &walker->buffers[TEXTS];
    size_t start;
    Text words;
    if (is_filled(text) && is_blank(text)) {
        walker->has_gap = 1;
        if (is_current && is_preformatted) add_text_without(walker, MARKED, text, CONTROL);
        else walker->has_space = 1;
        return;
    }
    walker->all_chars += count_chars(strip(text));
    if (element->is_in_noscript) add_message(walker, text);
    if (!is_collected) return;
    if (!is_current) {
        flush(walker);
        walker->box = element->box;
    }
    start = texts->length;
    walker->has_control = 0;
    walker->has_gap = add_words(walker, TEXTS, walker->text_start, text, NUL, walker->has_gap);
    words.start = texts->data + start;
    words.end = texts->data + texts->length;
    if (is_filled(words) && *words.start == ' ') words.start++;
    chars = walker->has_control ? count_word_chars(text) : count_chars(words) - count_spaces(words);
    walker->chars += chars;
    if (element->is_in_link) walker->link_chars += chars;
    if (is_preformatted) add_text_without(walker, MARKED, text, CONTROL);
    else if (walker->has_control || !is_filled(words)) add_marked_words(walker, text);
    else add_collapsed_words(walker, words, get_space_length(text.start, text.end) > 0, walker->has_gap);
}

/* ---- Records ---- */

static void add_anchor(Walker *walker, Text target, int is_followed) {
    add_byte(walker, LOCAL, is_filled(target) && *target.start == '#');
    add_string(walker, ANCHORS, target);
    add_byte(walker, FOLLOWED, (byte)is_followed);
}

/* Return the text of a node, which must be freed; NULL if memory runs out. */
static byte *get_text(Walker *walker, Node *node, Text *text) {
    size_t length = 0;
    byte *start = call->get_text(node, &length);
    if (!start) walker->scan->failed = 1;
    text->start = start;
    text->end = start ? start + length : 0;
    return start;
}

static void collect_text(Walker *walker, Node *node, int is_title) {
    Text text;
    byte *owned = get_text(walker, node, &text);
    if (!owned) return;
    if (is_title) {
        add_words(walker, RECORD_VALUES, walker->buffers[RECORD_VALUES].length, text, NUL, 0);
        add_byte(walker, RECORD_VALUES, 0);
    } else {
        text = take_chars(text, walker->data_chars_left);
        walker->data_chars_left -= count_chars(text);
        add_string(walker, SCRIPTS, text);
    }
    call->free_text(walker->document, owned);
}

/* Return whether a node is text, but only whitespace: that of HTML, or any. */
static int is_blank_text(Walker *walker, Node *node, int is_of_html) {
    Text text;
    byte *owned;
    if (call->get_type(node) != TEXT_NODE || !(owned = get_text(walker, node, &text))) return 0;
    if (!is_of_html) text.start = skip_spaces(text);
    while (text.start < text.end && is_html_space(*text.start)) text.start++;
    call->free_text(walker->document, owned);
    return text.start == text.end;
}

static int is_empty_link(Walker *walker, Node *node, const Attributes *attributes) {
    Node *child = call->get_child(node);
    while (child && is_blank_text(walker, child, 0)) child = call->get_next(child);
    return !child && !is_filled(get(attributes, ARIA_LABEL)) && !is_filled(get(attributes, TITLE));
}

static int is_blank_element(Walker *walker, Node *node) {
    Node *child = call->get_child(node);
    while (child && (call->get_type(child) == COMMENT_NODE || is_blank_text(walker, child, 1)))
        child = call->get_next(child);
    return !child;
}

static void add_record(Walker *walker, int kind, const Attributes *attributes, const byte *names, int count) {
    add_byte(walker, RECORD_KINDS, (byte)kind);
    while (count--) add_string(walker, RECORD_VALUES, get(attributes, *names++));
}

static void add_word(Walker *walker, const char *word) {
    add_string(walker, RECORD_VALUES, get_name_at((const byte *)word));
}

static const byte NEXT_OR_PREV[] = "next\0prev\0";
static const byte META_VALUES[] = {CONTENT_VALUE, NAME, HTTP_EQUIV, PROPERTY}, LINK_VALUES[] = {HREF, REL, TYPE};
static const byte IMAGE_VALUES[] = {SRC, ALT, CONTENT_VALUE}, SCRIPT_VALUES[] = {TYPE}, BLANK_VALUES[] = {ID};

static void collect_head(Walker *walker, Node *node, int tag, const Attributes *attributes, const Element *element) {
    if (tag == LINK_TAG && has(attributes, HREF)) {
        add_record(walker, LINK_RECORD, attributes, LINK_VALUES, 3);
        if (has_token(get(attributes, REL), NEXT_OR_PREV)) add_anchor(walker, get(attributes, HREF), 1);
    } else if (tag == META && has(attributes, CONTENT_VALUE)) {
        add_record(walker, META_RECORD, attributes, META_VALUES, 4);
        add_word(walker, element->is_in_noscript ? "noscript" : "");
    } else if (tag == BASE && !walker->buffers[BASE_VALUE].length && has(attributes, HREF)) {
        add_string(walker, BASE_VALUE, get(attributes, HREF));
    } else if (tag == TITLE_TAG && (walker->titles == 0 || (walker->titles == 1 && !element->is_in_svg))) {
        walker->titles = element->is_in_svg ? 1 : 2;
        add_byte(walker, RECORD_KINDS, TITLE_RECORD);
        collect_text(walker, node, 1);
        add_word(walker, element->is_in_svg ? "svg" : "");
    }
}

static void collect(Walker *walker, Node *node, const Tag *tag, const Attributes *attributes, const Element *element) {
    int is_filled_tag = tag->flags & FILLED || (tag->flags & FILLED_WITH_ID && has(attributes, ID));
    switch (tag->special) {
    case A: case AREA:
        if (has(attributes, HREF))
            add_anchor(walker, get(attributes, HREF), !has_token(get(attributes, REL), (const byte *)"nofollow\0"));
        break;
    case IFRAME: case FRAME:
        if (has(attributes, SRC))
            add_anchor(walker, get(attributes, is_filled(get(attributes, HREF)) ? HREF : SRC), 1);
        break;
    case IMG:
        add_record(walker, IMAGE_RECORD, attributes, IMAGE_VALUES, 3);
        break;
    case SCRIPT:
        if (has(attributes, SRC) || walker->data_chars_left <= 0 || element->is_in_script) break;
        add_record(walker, SCRIPT_RECORD, attributes, SCRIPT_VALUES, 1);
        collect_text(walker, node, 0);
        break;
    case INPUT:
        if (is_one_of(get(attributes, TYPE), (const byte *)"password\0", 1)) walker->scan->signs |= PASSWORD_FIELD;
        break;
    case BODY:
        walker->is_in_body = 1;
        break;
    default:
        if (!contains(walker->ignored, node) && (!walker->watched.sorted || contains(walker->watched, node)))
            collect_head(walker, node, tag->special, attributes, element);
        if (is_filled_tag && is_blank_element(walker, node))
            add_record(walker, BLANK_RECORD, attributes, BLANK_VALUES, 1);
    }
}

/* ---- Elements ---- */

static int add_box(Walker *walker, int tag, Text classes, int parent, int flags) {
    add_byte(walker, BOX_TAGS, (byte)tag);
    add_integer(walker, BOX_PARENTS, parent);
    add_integer(walker, BOX_ENDS, 0);
    add_byte(walker, BOX_FLAGS, (byte)flags);
    add_string(walker, BOX_CLASSES, classes);
    return get_box_count(walker) - 1;
}

static void open_box(Walker *walker, const Tag *tag, const Attributes *attributes, Element *element) {
    int name, is_first = 1, flags = walker->buffers[BOX_FLAGS].data[element->box];
    if (tag->flags & CONTENT_TAG) flags |= CONTENT;
    if (tag->flags & BOILERPLATE_TAG || (tag->special == HEADER && !(flags & CONTENT))) flags |= BOILERPLATE;
    if (is_one_of(get(attributes, ROLE), settings->boilerplate_roles, 1)) flags |= BOILERPLATE;
    if (tag->flags & PREFORMATTED_TAG) flags |= PREFORMATTED;
    element->box = element->own_box = add_box(walker, (int)(tag - tags), get(attributes, CLASS), element->box, flags);
    for (name = ID; name <= ITEMTYPE; name++) {
        if (!is_filled(get(attributes, name))) continue;
        if (!is_first) add_byte(walker, BOX_HINTS, ' ');
        add_text_without(walker, BOX_HINTS, get(attributes, name), NUL);
        is_first = 0;
    }
    add_byte(walker, BOX_HINTS, 0);
}

enum { MAX_HINT_CHARS = 1000, MAX_CHAR_BYTES = 4 };

/* Add the class of a code element, which names its language, to the hints of the last box. */
static void add_hint(Walker *walker, Text classes) {
    Buffer *hints = &walker->buffers[BOX_HINTS];
    size_t end = --hints->length, start = end; /* without the NUL */
    Text all;
    while (start && hints->data[start - 1] && end - start < MAX_CHAR_BYTES * MAX_HINT_CHARS) start--;
    all.start = hints->data + start;
    all.end = hints->data + hints->length;
    if (end - start == MAX_CHAR_BYTES * MAX_HINT_CHARS || count_chars(all) >= MAX_HINT_CHARS) {
        hints->length++;
        return;
    }
    add_byte(walker, BOX_HINTS, ' ');
    add_string(walker, BOX_HINTS, classes);
    if (walker->scan->failed) return;
    all.start = hints->data + start;
    all.end = hints->data + hints->length - 1;
    all = strip(all);
    hints->length = start;
    add_string(walker, BOX_HINTS, all); /* moves it within the buffer, which is large enough */
}

static void add_pointer(Walker *walker, int box, int kind, int target) {
    add_integer(walker, POINTERS, get_integer_count(walker, LINE_BOXES));
    add_integer(walker, POINTERS, box);
    add_integer(walker, POINTERS, kind);
    add_integer(walker, POINTERS, target);
}

static void open_mark(Walker *walker, Element *element, int anchor, u32 start, u32 end) {
    Mark *mark = (Mark *)(void *)reserve(walker, &walker->open_marks, sizeof *mark);
    if (!mark) return;
    mark->anchor = anchor;
    mark->start = (byte)start;
    mark->end = (byte)end;
    walker->open_marks.length += sizeof *mark;
    walker->pending++;
    element->has_mark = 1;
}

static void open_inline(Walker *walker, Node *node, const Tag *tag, const Attributes *attributes, Element *element) {
    int is_link = tag->special == A && has(attributes, HREF), number = get_anchor_count(walker);
    if (is_link) {
        element->is_in_link = 1;
        if (!is_empty_link(walker, node, attributes)) {
            int is_alternate = has_token(get(attributes, REL), (const byte *)"alternate\0");
            int is_translation = is_alternate && is_filled(get(attributes, HREFLANG));
            add_pointer(walker, element->box, is_translation ? TRANSLATION : LINK, number);
        }
    } else if (tag->special == IMG) {
        add_pointer(walker, element->box, IMAGE, (int)walker->buffers[RECORD_KINDS].length);
    }
    if (walker->buffers[BOX_FLAGS].data[element->box] & PREFORMATTED) {
        if (tag->special == CODE && element->box == get_box_count(walker) - 1 && is_filled(get(attributes, CLASS)))
            add_hint(walker, get(attributes, CLASS));
    } else if (is_link) {
        open_mark(walker, element, number, settings->link_marks[0], settings->link_marks[2]);
    } else if (tag->flags >> 16) {
        open_mark(walker, element, -1, tag->flags >> 16 & 0xFF, tag->flags >> 24);
    }
}

static void open_element(Walker *walker, Node *node, int depth) {
    const Tag *tag = find_tag(node);
    Element *outer, *element;
    Attributes attributes;
    int is_hidden, is_watched;
    read_attributes(node, &attributes);
    if (is_placeholder(&attributes)) walker->scan->signs |= PLACEHOLDER;
    is_hidden = is_hidden_by_attributes(&attributes) || contains(walker->ignored, node);
    is_watched = contains(walker->watched, node);
    if (tag == tags && !is_hidden && !is_watched) return;
    element = (Element *)(void *)reserve(walker, &walker->elements, sizeof *element);
    if (!element) return;
    outer = element - 1;
    *element = *outer;
    element->depth = depth;
    element->own_box = element->root_chars = -1;
    element->has_mark = 0;
    is_hidden |= tag->flags & HIDDEN && !(walker->with_noscript && tag->special == NOSCRIPT);
    element->is_hidden |= is_hidden;
    element->is_watched |= is_watched;
    element->is_in_noscript |= tag->special == NOSCRIPT;
    element->is_in_svg |= tag->special == SVG;
    if (tag->special == BR) flush(walker);
    if (!element->is_hidden) {
        if (tag->flags & BLOCK) {
            open_box(walker, tag, &attributes, element);
        } else if (element->is_watched != outer->is_watched) {
            Attributes none;
            none.present = 0;
            open_box(walker, tags, &none, element);
        }
        if (walker->scan->failed) return;
        if (element->is_watched) open_inline(walker, node, tag, &attributes, element);
    }
    if (element->is_in_noscript && !outer->is_in_noscript) {
        walker->message_chars = walker->message_words = 0;
        walker->message_gap = 1;
    }
    if (tag->flags & BLOCK && tag->special != BODY && is_one_of(get(&attributes, ID), settings->root_ids, 0)) {
        element->root_chars = walker->all_chars;
        element->root_anchors = get_anchor_count(walker);
    }
    collect(walker, node, tag, &attributes, element);
    element->is_in_script |= tag->special == SCRIPT;
    walker->elements.length += sizeof *element;
}

static void close_element(Walker *walker) {
    const Element *element;
    walker->elements.length -= sizeof *element;
    element = (const Element *)(void *)(walker->elements.data + walker->elements.length);
    if (element->own_box >= 0)
        ((int *)(void *)walker->buffers[BOX_ENDS].data)[element->own_box] = get_box_count(walker);
    if (element->has_mark) {
        byte end = get_mark(walker, get_mark_count(walker) - 1)->end;
        walker->open_marks.length -= sizeof(Mark);
        if (walker->pending) walker->pending--;
        else add_byte(walker, MARKED, end);
    }
    if (element->root_chars >= 0 && walker->all_chars - element->root_chars <= settings->max_root_chars
        && get_anchor_count(walker) == element->root_anchors)
        walker->scan->signs |= EMPTY_ROOT;
    if (element->is_in_noscript && walker->is_in_body && walker->message_words >= settings->min_message_words)
        walker->scan->signs |= NOSCRIPT_MESSAGE;
}

static void visit(Walker *walker, Node *node, int depth) {
    Text text;
    byte *owned;
    int type = call->get_type(node);
    if (type == ELEMENT_NODE) open_element(walker, node, depth);
    if (type != TEXT_NODE || !(owned = get_text(walker, node, &text))) return;
    add_text(walker, text, (Element *)(void *)(walker->elements.data + walker->elements.length) - 1);
    call->free_text(walker->document, owned);
}

static void walk(Walker *walker, Node *root) {
    Node *node = root, *other;
    int depth = 1;
    for (;;) {
        visit(walker, node, depth);
        if (walker->scan->failed) return;
        if ((other = call->get_child(node))) {
            node = other;
            depth++;
            continue;
        }
        for (;;) {
            if (((Element *)(void *)(walker->elements.data + walker->elements.length) - 1)->depth == depth)
                close_element(walker);
            if (node == root || walker->scan->failed) return;
            if ((other = call->get_next(node))) break;
            node = call->get_parent(node);
            depth--;
        }
        node = other;
    }
}

/* Scan a tree; return whether there was memory for it. The result must be freed in any case.
   watched: NULL for all elements. Both lists of nodes must be sorted. */
int scan_tree(Node *root, Node *const *ignored, size_t ignored_count, Node *const *watched, size_t watched_count,
              int with_noscript, Scan *scan) {
    Attributes attributes;
    Walker state, *walker = &state;
    Element *outermost;
    clear(scan, sizeof *scan);
    clear(walker, sizeof *walker);
    walker->scan = scan;
    walker->buffers = scan->buffers;
    walker->ignored.sorted = ignored;
    walker->ignored.count = ignored_count;
    walker->watched.sorted = watched;
    walker->watched.count = watched_count;
    walker->document = call->get_parent(root);
    walker->with_noscript = with_noscript;
    walker->box = -1;
    walker->data_chars_left = settings->max_data_chars;
    outermost = (Element *)(void *)reserve(walker, &walker->elements, sizeof *outermost);
    if (!outermost) return 0;
    clear(outermost, sizeof *outermost);
    outermost->own_box = outermost->root_chars = -1;
    outermost->is_watched = !watched;
    walker->elements.length = sizeof *outermost;
    add_box(walker, 0, no_text, 0, 0);
    add_byte(walker, BOX_HINTS, 0);
    read_attributes(root, &attributes);
    add_string(walker, LANGUAGE, get(&attributes, is_filled(get(&attributes, LANG)) ? LANG : XML_LANG));
    if (!scan->failed) walk(walker, root);
    if (!scan->failed) flush(walker);
    if (!scan->failed) *(int *)(void *)scan->buffers[BOX_ENDS].data = get_box_count(walker);
    call->free(walker->elements.data);
    call->free(walker->open_marks.data);
    return !scan->failed;
}

void free_scan(Scan *scan) {
    int at;
    for (at = 0; at < BUFFERS; at++) {
        call->free(scan->buffers[at].data);
        scan->buffers[at].data = 0;
    }
}

/* ---- The texts of a page, as content.py and main_content/choice.py have them ---- */

enum { CHARACTERS = 0x2200, UNKNOWN = 0xFFFF };

static void resume(Walker *walker, Scan *scan) {
    clear(walker, sizeof *walker);
    walker->scan = scan;
    walker->buffers = scan->buffers;
}

/* Take the next string of a buffer. */
static Text take_string(Text *rest) {
    Text string = *rest;
    if ((string.end = find_byte(*rest, 0))) rest->start = string.end + 1;
    else string.end = rest->start = rest->end;
    return string;
}

static Text get_strings(const Scan *scan, int number) {
    Text strings;
    strings.start = scan->buffers[number].data;
    strings.end = strings.start + scan->buffers[number].length;
    return strings;
}

/* Append a line and its end to a text. */
static void add_line(Walker *walker, int number, Text line) {
    if (!is_filled(line)) return;
    add_string(walker, number, line);
    if (!walker->scan->failed) walker->buffers[number].data[walker->buffers[number].length - 1] = '\n';
}

static void drop_last_line_end(Buffer *buffer) { if (buffer->length) buffer->length--; }

/* Return the end of the mark at the start of a text, or NULL if there is none. */
static const byte *skip_mark(Text text) {
    const byte *at = text.start;
    if (*at != settings->link_marks[0]) return (*at >= 3 && *at <= 8) || *at == settings->link_marks[2] ? at + 1 : 0;
    while (++at < text.end && *at >= '0' && *at <= '9');
    return at > text.start + 1 && at < text.end && *at == settings->link_marks[1] ? at + 1 : 0;
}

static void add_unmarked(Walker *walker, int number, Text marked) {
    byte *to = reserve(walker, &walker->buffers[number], (size_t)(marked.end - marked.start));
    if (!to) return;
    while (marked.start < marked.end) {
        const byte *end = *marked.start > 16 ? 0 : skip_mark(marked);
        if (end) marked.start = end;
        else *to++ = *marked.start++;
    }
    walker->buffers[number].length = (size_t)(to - walker->buffers[number].data);
}

/* Remove the ends of lines at both ends of what is in a buffer from `start` on. */
static void strip_line_ends(Buffer *buffer, size_t start) {
    size_t from = start, to = start;
    while (buffer->length > start && buffer->data[buffer->length - 1] == '\n') buffer->length--;
    while (from < buffer->length && buffer->data[from] == '\n') from++;
    if (from == start) return;
    while (from < buffer->length) buffer->data[to++] = buffer->data[from++];
    buffer->length = to;
}

/* Join the main text again, with the line breaks and the indentation of preformatted text. */
static void restore_line_breaks(Walker *walker, const byte *box_flags, const int *boxes, int lines, int is_whole) {
    Buffer *restored = &walker->buffers[RESTORED];
    Text texts = get_strings(walker->scan, TEXTS), all_marked = get_strings(walker->scan, MARKED);
    int line;
    for (line = 0; line < lines; line++) {
        Text text = take_string(&texts), marked = take_string(&all_marked);
        size_t start = restored->length;
        byte flags = box_flags[boxes[line]];
        if (flags & BOILERPLATE && !is_whole) continue;
        if (!(flags & PREFORMATTED)) {
            add_line(walker, RESTORED, text);
            continue;
        }
        add_unmarked(walker, RESTORED, marked);
        strip_line_ends(restored, start);
        if (restored->length > start) add_byte(walker, RESTORED, '\n');
    }
    drop_last_line_end(restored);
}

/* Join the lines of a page to its whole text, its main text, and the numbers of spaces; return whether there was memory
   for it. min_main_percent: of the characters, or the main text is all.
   facts: the number of characters; whether the main text is all; whether it was joined again. */
int join_texts(Scan *scan, int min_main_percent, int *facts) {
    Walker state, *walker = &state;
    const byte *box_flags = scan->buffers[BOX_FLAGS].data;
    const int *boxes = (const int *)(const void *)scan->buffers[LINE_BOXES].data;
    Text texts = get_strings(scan, TEXTS);
    int line, lines, box, has_code = 0, has_boilerplate = 0;
    resume(walker, scan);
    for (box = WHOLE; box <= SHAPE; box++) scan->buffers[box].length = 0;
    lines = get_integer_count(walker, LINE_BOXES);
    for (line = 0; line < lines; line++) {
        Text text = take_string(&texts);
        int is_main = !(box_flags[boxes[line]] & BOILERPLATE);
        if (!is_filled(text)) continue;
        add_line(walker, WHOLE, text);
        add_integer(walker, SHAPE, count_spaces(text));
        if (is_main) add_line(walker, MAIN, text);
        else has_boilerplate = 1;
    }
    if (!scan->buffers[SHAPE].length) add_integer(walker, SHAPE, 0);
    drop_last_line_end(&scan->buffers[WHOLE]);
    drop_last_line_end(&scan->buffers[MAIN]);
    if (scan->failed) return 0;
    facts[0] = count_chars(get_strings(scan, WHOLE));
    facts[1] = !has_boilerplate
        || 100ll * count_chars(get_strings(scan, MAIN)) < (long long)min_main_percent * facts[0];
    for (box = get_box_count(walker); box-- && !has_code;) has_code = box_flags[box] & PREFORMATTED;
    if ((facts[2] = has_code > 0)) restore_line_breaks(walker, box_flags, boxes, lines, facts[1]);
    return !scan->failed;
}

static u32 get_char(const byte *at, const byte **end) {
    int more = *at < 0x80 ? 0 : *at < 0xE0 ? 1 : *at < 0xF0 ? 2 : 3;
    u32 character = more ? *at & (0x3F >> more) : *at;
    while (more--) character = character << 6 | (*++at & 0x3F);
    *end = at + 1;
    return character;
}

enum { NO_SYMBOLS, SYMBOLS, UNKNOWN_SYMBOLS };

/* Skip one or two characters that are no words, spaces or controls; return whether they are such. */
static int skip_symbols(Text *text) {
    int count, found = NO_SYMBOLS;
    for (count = 0; count < 2 && is_filled(*text); count++) {
        const byte *end;
        u32 character = get_char(text->start, &end);
        if (character < 32 || get_space_length(text->start, text->end)) break;
        if (character < CHARACTERS && settings->lower[character]) break;
        if (character >= CHARACTERS) found = UNKNOWN_SYMBOLS;
        else if (!found) found = SYMBOLS;
        text->start = end;
    }
    return found;
}

/* Find the last permalink of a line: a link of at most two symbols to a part of the page. Return SYMBOLS if there is
   one, and UNKNOWN_SYMBOLS if only Python can tell. */
static int find_permalink(const Scan *scan, Text marked, Text *permalink) {
    int found = NO_SYMBOLS;
    while ((marked.start = find_byte(marked, settings->link_marks[0]))) {
        Text rest = marked, link;
        size_t number = 0;
        int kind;
        if (!(rest.start = skip_mark(marked))) {
            marked.start++;
            continue;
        }
        for (marked.start++; marked.start < rest.start - 1; marked.start++) number = number * 10 + *marked.start - '0';
        rest.start = link.start = skip_spaces(rest);
        kind = skip_symbols(&rest);
        link.end = rest.start;
        rest.start = skip_spaces(rest);
        if (!kind || !is_filled(rest) || *rest.start != settings->link_marks[2]) continue;
        if (number >= scan->buffers[LOCAL].length || !scan->buffers[LOCAL].data[number]) continue;
        if (kind == UNKNOWN_SYMBOLS) return kind;
        found = kind;
        *permalink = link;
    }
    return found;
}

/* Append a text without all occurrences of another one. */
static void add_text_between(Walker *walker, Text text, Text other) {
    size_t start = walker->buffers[READING].length, length = (size_t)(other.end - other.start);
    int has_gap = 0;
    for (;;) {
        Text piece = text;
        while ((size_t)(text.end - text.start) >= length) {
            Text here = {text.start, text.start + length};
            if (equals(here, other.start, length)) break;
            text.start++;
        }
        piece.end = (size_t)(text.end - text.start) >= length ? text.start : text.end;
        has_gap = add_words(walker, READING, start, piece, NUL, has_gap);
        if (piece.end == text.end) return;
        text.start += length;
        has_gap = 1;
    }
}

/* Remove the whitespace at the ends of lines, and empty lines at both ends, from the code in a buffer. */
static void finish_code(Buffer *buffer, size_t start) {
    Text rest, row;
    byte *to = buffer->data + start;
    rest.start = to;
    rest.end = buffer->data + buffer->length;
    while (rest.start < rest.end) {
        int has_end;
        row = rest;
        row.end = find_byte(rest, '\n');
        has_end = row.end != 0;
        if (!has_end) row.end = rest.end;
        rest.start = row.end + has_end;
        row = strip_end(row);
        while (row.start < row.end) *to++ = *row.start++;
        if (has_end) *to++ = '\n';
    }
    buffer->length = (size_t)(to - buffer->data);
    strip_line_ends(buffer, start);
}

/* Join chosen lines to the content text. Return 1, 0 if memory runs out, or -1 if only Python can join them. */
int join_content(Scan *scan, const int *chosen, size_t count) {
    Walker state, *walker = &state;
    Buffer *reading = &scan->buffers[READING];
    const byte *box_flags = scan->buffers[BOX_FLAGS].data;
    const int *boxes = (const int *)(const void *)scan->buffers[LINE_BOXES].data, *pointer;
    Text texts = get_strings(scan, TEXTS), all_marked = get_strings(scan, MARKED);
    size_t code_start = 0, part_start, at;
    int line = 0, lines, pointers, code_box = -1, is_first = 1;
    byte *has_local_link;
    resume(walker, scan);
    lines = get_integer_count(walker, LINE_BOXES);
    scan->buffers[PERMALINKS].length = reading->length = 0;
    if (!(has_local_link = reserve(walker, &scan->buffers[PERMALINKS], (size_t)lines + 1))) return 0;
    clear(has_local_link, (size_t)lines + 1);
    pointer = (const int *)(const void *)scan->buffers[POINTERS].data;
    for (pointers = get_integer_count(walker, POINTERS) / 4; pointers--; pointer += 4)
        if (pointer[2] == LINK && pointer[0] < lines) has_local_link[pointer[0]] |= scan->buffers[LOCAL].data[pointer[3]];
    for (at = 0; at < count; at++) {
        Text text = texts, marked = all_marked, permalink = no_text;
        int box = boxes[chosen[at]], kind;
        for (; line <= chosen[at]; line++) text = take_string(&texts), marked = take_string(&all_marked);
        if (code_box >= 0 && box != code_box) {
            finish_code(reading, code_start);
            code_box = -1;
        }
        part_start = reading->length;
        if (!is_first || code_box >= 0) add_byte(walker, READING, '\n');
        if (box_flags[box] & PREFORMATTED) {
            if (code_box < 0) code_start = reading->length;
            code_box = box;
            add_unmarked(walker, READING, marked);
        } else {
            size_t start = reading->length;
            kind = has_local_link[chosen[at]] ? find_permalink(scan, marked, &permalink) : NO_SYMBOLS;
            if (kind == UNKNOWN_SYMBOLS) return -1;
            if (kind == SYMBOLS) {
                add_text_between(walker, text, permalink);
            } else {
                add_string(walker, READING, text);
                if (!scan->failed) reading->length--;
            }
            if (reading->length == start) {
                reading->length = part_start;
                continue;
            }
        }
        if (scan->failed) return 0;
        is_first = 0;
    }
    if (code_box >= 0) finish_code(reading, code_start);
    return !scan->failed;
}

/* ---- The cost of a page, as page_cost.py estimates it ---- */

enum { MAX_NAMES = 1024 }; /* a power of two; a page with more than half as many names is left to Python */
typedef struct { Text name; u32 flags; int count; } Opened;
typedef struct { Opened entries[MAX_NAMES]; int used; } Names;

/* Return the entry of a name in any case; NULL if there are too many names. */
static Opened *find_name(Names *names, Text name) {
    const byte *at;
    u32 hash = 2166136261u;
    for (at = name.start; at < name.end; at++) hash = (hash ^ lower(*at)) * 16777619u;
    for (hash ^= hash >> 15;; hash++) {
        Opened *entry = &names->entries[hash % MAX_NAMES];
        Text other = entry->name;
        if (!other.start) {
            if (names->used++ >= MAX_NAMES / 2) return 0;
            entry->name = name;
            return entry;
        }
        if (other.end - other.start != name.end - name.start) continue;
        for (at = name.start; at < name.end && lower(*at) == lower(*other.start); at++) other.start++;
        if (at == name.end) return entry;
    }
}

static void add_cost_tags(Names *names) {
    Text name;
    const u32 *flags = settings->cost_flags;
    clear(names, sizeof *names);
    for (name = get_name_at(settings->cost_tags); name.start < name.end; name = get_name_at(name.end + 1))
        find_name(names, name)->flags = *flags++;
}

static const byte *find_comment_end(Text text) {
    const byte *first = text.start, *at;
    while ((at = find_byte(text, '>'))) {
        text.start = at + 1;
        if (at > first && at[-1] == '!') at--;
        if (at - first >= 2 && at[-1] == '-' && at[-2] == '-') return text.start;
    }
    return 0;
}

/* Return the end of the start of an end tag; NULL if there is none. *is_foreign: whether only Python can tell, because
   in any case some letters equal others that are not ASCII. */
static const byte *find_raw_end(Text text, Text name, int *is_foreign) {
    while ((text.start = find_byte(text, '<'))) {
        const byte *at = ++text.start, *letter = name.start;
        if (at == text.end || *at++ != '/') continue;
        while (at < text.end && letter < name.end && lower(*at) == lower(*letter)) at++, letter++;
        if (letter == name.end) return at;
        if (at < text.end && *at >= 0x80) {
            *is_foreign = 1;
            return 0;
        }
    }
    return 0;
}

static int is_letter(byte value) { return lower(value) >= 'a' && lower(value) <= 'z'; }

/* Return the end of the attributes of a tag. */
static const byte *skip_attributes(Text text) {
    while (text.start < text.end && *text.start != '>') {
        const byte *quote;
        Text inner = text;
        if (*text.start++ != '=') continue;
        inner.start++;
        inner.start = quote = skip_spaces(inner);
        if (quote == text.end || (*quote != '"' && *quote != '\'')) continue;
        inner.start++;
        if ((inner.start = find_byte(inner, *quote))) text.start = inner.start + 1;
    }
    return text.start;
}

typedef struct { long long depth, formatting, foreign, steps, nodes, count; } Cost;

static void open_name(Opened *entry, int change, Cost *cost) {
    entry->count += change;
    cost->depth += change;
    if (entry->flags & FORMATTING) cost->formatting += change;
    if (entry->flags & FOREIGN) cost->foreign += change;
}

/* Return how many bytes of a page can be parsed in bounded time and memory; -1 if Python must find out. */
long long count_affordable_bytes(const byte *start, size_t length, long long max_tags) {
    Cost cost;
    Names names;
    Text text;
    clear(&cost, sizeof cost);
    add_cost_tags(&names);
    text.start = start;
    text.end = start + length;
    while ((text.start = find_byte(text, '<'))) {
        const byte *tag = text.start;
        Text name, rest = no_text, word;
        int is_closing = 0, is_foreign = 0;
        if (text.end - tag > 3 && tag[1] == '!' && tag[2] == '-' && tag[3] == '-') {
            text.start = tag + 4;
            if (!(text.start = find_comment_end(text))) break;
        } else {
            Opened *entry;
            is_closing = text.end - tag > 1 && tag[1] == '/';
            name.start = name.end = tag + 1 + is_closing;
            text.start++;
            if (name.start >= text.end || !is_letter(*name.start)) continue;
            while (name.end < text.end && *name.end != '/' && *name.end != '>' && !get_space_length(name.end, text.end))
                if (*name.end++ >= 0x80) return -1;
            rest.start = text.start = name.end;
            rest.end = text.start = skip_attributes(text);
            if (!(entry = find_name(&names, name))) return -1;
            if (is_closing) {
                if (entry->count) open_name(entry, -1, &cost);
            } else if (entry->flags & RAW && !cost.foreign) {
                text.start = find_raw_end(text, name, &is_foreign);
                if (is_foreign) return -1;
                if (!text.start) break;
            } else if (!(entry->flags & SHALLOW) && !(cost.foreign && is_filled(rest) && rest.end[-1] == '/')) {
                open_name(entry, 1, &cost);
            }
        }
        if (count_chars(rest) > settings->many_attributes_chars) {
            long long words = 0;
            while (take_word(&rest, &word)) words++;
            cost.steps += words * words / 4;
        }
        cost.steps += cost.depth;
        cost.nodes += cost.formatting;
        cost.count += !is_closing;
        if (cost.count > max_tags || cost.steps > settings->tree_steps || cost.nodes > settings->formatted_nodes)
            return tag - start;
    }
    return (long long)length;
}

/* ---- The words of a text, as text_words.py has them ---- */

static int is_unspaced(const byte *at, const byte *end) {
    const u32 *range = settings->unspaced;
    u32 character;
    if (end - at < 3 || *at < 0xE3 || *at >= 0xF0) return 0;
    character = (u32)(*at & 0xF) << 12 | (u32)(at[1] & 0x3F) << 6 | (at[2] & 0x3F);
    while (*range && !(character >= range[0] && character <= range[1])) range += 2;
    return *range > 0;
}

/* Kinds of bytes in words. MAY_BE_UNSPACED: it may be the first byte of a character that is a word. */
enum { SEPARATOR, IN_WORD, DIGIT, MAY_BE_UNSPACED };
static byte word_kinds[256];

static int is_in_word(byte each) { return word_kinds[each] != SEPARATOR; }

static int get_word_kind(int value) {
    if (value >= 0x80) return value >= 0xE3 && value < 0xF0 ? MAY_BE_UNSPACED : IN_WORD;
    if (value >= '0' && value <= '9') return DIGIT;
    return is_letter((byte)value) || value == '_' ? IN_WORD : SEPARATOR;
}

/* Write the hash and the marks of each word of a text; return how many there are, at most `max_words`. */
size_t hash_words(const byte *at, size_t length, u64 *hashes, byte *marks, size_t max_words) {
    const byte *end = at + length;
    size_t count = 0;
    int mark = STARTS_LINE;
    while (count < max_words) {
        const byte *word;
        for (; at < end && !is_in_word(*at); at++)
            if (*at == '\n') mark = STARTS_LINE;
        if (at == end) break;
        word = at;
        if (is_unspaced(at, end)) at += 3;
        else for (; at < end; at++) {
            int kind = word_kinds[*at];
            if (kind == IN_WORD) continue;
            if (kind == SEPARATOR || (kind == MAY_BE_UNSPACED && is_unspaced(at, end))) break;
            if (kind == DIGIT) mark |= HAS_DIGIT;
        }
        marks[count] = (byte)mark;
        hashes[count++] = call->hash(word, (size_t)(at - word));
        mark = 0;
    }
    return count;
}

/* ---- Fingerprint and sample, as fingerprint.py and sample.py have them ---- */

enum { SHINGLE_WORDS = 3, SAMPLE_SIZE = 8, MAX_SAMPLE_WORDS = 512, MAX_BYTE = 255 };
typedef struct {
    u64 max_chars, max_words, sample_words, line_end, wildcard; /* the last two: hashes */
    u64 words, fingerprint, sample_size, sample[SAMPLE_SIZE]; /* the result */
} WordDigest;

/* Write the lowercase of a text, with spaces in place of characters that are not ASCII and in no word. Return 1, 0 if
   memory runs out, or -1 if only Python knows the lowercase. */
static int lower_words(Walker *walker, Text text) {
    walker->buffers[LOWER].length = 0;
    byte *to = reserve(walker, &walker->buffers[LOWER], 2 * (size_t)(text.end - text.start) + 8);
    if (!to) return 0;
    while (text.start < text.end) {
        const u64 ones = 0x0101010101010101ull;
        u32 character;
        const byte *end;
        for (; text.end - text.start >= 8; text.start += 8, to += 8) { /* eight ASCII characters at once */
            u64 word = ((const Word *)(const void *)text.start)->value;
            if (word & ones << 7) break;
            word |= ((word + ones * (0x80 - 'A')) & ~(word + ones * (0x7F - 'Z')) & ones << 7) >> 2;
            ((Word *)(void *)to)->value = word;
        }
        if (text.start == text.end) break;
        character = *text.start;
        end = text.start + 1;
        if (character < 0x80) {
            *to++ = lower((byte)character);
            text.start = end;
            continue;
        }
        if (is_unspaced(text.start, text.end)) {
            *to++ = *text.start++, *to++ = *text.start++, *to++ = *text.start++;
            continue;
        }
        character = get_char(text.start, &end);
        text.start = end;
        if (character >= CHARACTERS || (character = settings->lower[character]) == UNKNOWN) return -1;
        if (!character) *to++ = ' ';
        else if (character < 0x80) *to++ = (byte)character;
        else {
            if (character < 0x800) *to++ = (byte)(0xC0 | character >> 6);
            else *to++ = (byte)(0xE0 | character >> 12), *to++ = (byte)(0x80 | (character >> 6 & 0x3F));
            *to++ = (byte)(0x80 | (character & 0x3F));
        }
    }
    walker->buffers[LOWER].length = (size_t)(to - walker->buffers[LOWER].data);
    return 1;
}

/* Return the hash of a run of words. */
static u64 mix_words(const u64 *words, size_t count) {
    u64 mixed = 0;
    while (count--) {
        mixed = (mixed ^ *words++) * 0x9E3779B97F4A7C15ull;
        mixed ^= mixed >> 29;
    }
    return mixed;
}

static u64 compute_fingerprint(const u64 *words, size_t count) {
    const u64 ones = 0x0101010101010101ull;
    size_t width = count < SHINGLE_WORDS ? count : SHINGLE_WORDS, shingles = count - width + 1, at, sums[64];
    u64 bytes[8], fingerprint = 0; /* the bits of eight hashes are counted in the bytes of one number */
    int bit, number;
    clear(sums, sizeof sums);
    clear(bytes, sizeof bytes);
    for (at = 0; at < shingles; at++) {
        u64 hash = mix_words(words + at, width);
        for (bit = 0; bit < 8; bit++) bytes[bit] += hash >> bit & ones;
        if (at % MAX_BYTE != MAX_BYTE - 1 && at + 1 < shingles) continue;
        for (number = 0; number < 64; number++) sums[number] += bytes[number % 8] >> (number & ~7) & MAX_BYTE;
        clear(bytes, sizeof bytes);
    }
    for (number = 0; number < 64; number++) fingerprint |= (u64)(2 * sums[number] > shingles) << number;
    return fingerprint;
}

static void add_to_sample(WordDigest *found, u64 hash) {
    size_t at = found->sample_size, last;
    while (at && found->sample[at - 1] > hash) at--;
    if (at == SAMPLE_SIZE || (at && found->sample[at - 1] == hash)) return;
    if (found->sample_size < SAMPLE_SIZE) found->sample_size++;
    for (last = found->sample_size - 1; last > at; last--) found->sample[last] = found->sample[last - 1];
    found->sample[at] = hash;
}

/* Sample the first words. replaced: the hashes of words that a wildcard replaces. */
static void sample_words(const u64 *words, const byte *marks, size_t count, const u64 *replaced, size_t replaced_count,
                         WordDigest *found) {
    u64 separated[3 * MAX_SAMPLE_WORDS + 2];
    size_t at, other, length = 0, width;
    if (count > found->sample_words) count = found->sample_words;
    if (count > MAX_SAMPLE_WORDS) count = MAX_SAMPLE_WORDS;
    for (at = 0; at < count; at++) {
        int is_replaced = marks[at] & HAS_DIGIT;
        for (other = 0; other < replaced_count && !is_replaced; other++) is_replaced = replaced[other] == words[at];
        if (marks[at] & STARTS_LINE) separated[length++] = found->line_end, separated[length++] = found->line_end;
        separated[length++] = is_replaced ? found->wildcard : words[at];
    }
    separated[length++] = found->line_end;
    separated[length++] = found->line_end;
    width = length < SHINGLE_WORDS ? length : SHINGLE_WORDS;
    for (at = 0; at + width <= length; at++) add_to_sample(found, mix_words(separated + at, width) >> 32);
}

/* Compute the fingerprint and the sample of the main text. Return 1, 0 if memory runs out, or -1 if only Python can. */
int digest_words(Scan *scan, int is_whole, const u64 *replaced, size_t replaced_count, WordDigest *found) {
    Walker state, *walker = &state;
    Text text = take_chars(get_strings(scan, is_whole ? WHOLE : MAIN), (int)found->max_chars);
    Buffer *hashes = &scan->buffers[HASHES], *lowered = &scan->buffers[LOWER];
    size_t max_words;
    int done;
    byte *marks;
    resume(walker, scan);
    found->sample_size = 0;
    if ((done = lower_words(walker, text)) != 1) return done;
    max_words = lowered->length / 2 + 1;
    if (max_words > found->max_words) max_words = found->max_words;
    marks = reserve(walker, &scan->buffers[MARKS], max_words);
    if (!marks || !reserve(walker, hashes, max_words * sizeof(u64))) return 0;
    found->words = hash_words(lowered->data, lowered->length, (u64 *)(void *)hashes->data, marks, max_words);
    if (!found->words) return 1;
    found->fingerprint = compute_fingerprint((const u64 *)(const void *)hashes->data, found->words);
    sample_words((const u64 *)(const void *)hashes->data, marks, found->words, replaced, replaced_count, found);
    return 1;
}

/* ---- Signs in the source of a page, as script_signs.py has them ---- */

enum { MAX_EVENT_CHARS = 320, MAX_BLANK_CHARS = 200, MIN_PATH_CHARS = 2, MAX_PATH_CHARS = 200 };

static int has_event(Text tag) {
    const byte *end = tag.end - tag.start > MAX_EVENT_CHARS ? tag.start + MAX_EVENT_CHARS : tag.end;
    for (; tag.start < end && *tag.start != '>'; tag.start++)
        if (lower(*tag.start) != 'o') continue;
        else if (skip_word(tag.start, tag.end, "onload") || skip_word(tag.start, tag.end, "onerror")) return 1;
    return 0;
}

/* Return whether a page may have something that a browser executes; else it has nothing for sure. */
int may_have_scripts(const byte *start, size_t length) {
    Text text;
    text.start = start;
    text.end = start + length;
    while ((text.start = find_byte(text, '<'))) {
        const byte *at = ++text.start;
        const char *name = 0, *other = 0;
        switch (at < text.end ? lower(*at) : 0) {
        case 's': name = "svg"; if (skip_word(at, text.end, "script")) return 1; break;
        case 'b': name = "body"; break;
        case 'i': name = "img"; other = "iframe"; break;
        case 'l': name = "link"; break;
        }
        if (name && (skip_word(at, text.end, name) || (other && skip_word(at, text.end, other))) && has_event(text)) return 1;
    }
    return 0;
}

/* Return whether a page has a custom element that is empty or ends with another element. */
int has_empty_custom_element(const byte *start, size_t length) {
    Text text;
    text.start = start;
    text.end = start + length;
    while ((text.start = find_byte(text, '<'))) {
        const byte *at = ++text.start, *last = text.start - 1;
        int count;
        if (text.end - at < 2 || *at != '/' || *++at < 'a' || *at > 'z') continue;
        while (++at < text.end && ((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9')));
        if (at == text.end || *at != '-') continue;
        for (count = 0; count < MAX_BLANK_CHARS && last > start; count++) {
            const byte *end = last;
            do last--; while (last > start && is_continuation(*last));
            if (get_space_length(last, end)) continue;
            if (*last == '>') return 1;
            break;
        }
    }
    return 0;
}

/* Find quoted paths in the inline scripts of a page; those of each script end with an empty string. Return whether there
   was memory for them. Only Python knows which characters that are not ASCII are in words. */
int find_data_paths(Scan *scan) {
    Walker state, *walker = &state;
    Text scripts = get_strings(scan, SCRIPTS), data, path;
    resume(walker, scan);
    scan->buffers[PATHS].length = 0;
    while (is_filled(scripts)) {
        const byte *start;
        for (data = take_string(&scripts), start = data.start; (data.start = find_byte(data, '/')); data.start = path.end) {
            const byte *before = data.start;
            int count = 0; /* an escaped slash counts once */
            path.start = path.end = data.start + 1;
            if (before > start && before[-1] == '\\') before--;
            if (before == start || (before[-1] != '"' && before[-1] != '\'')) continue;
            if (path.end < data.end && *path.end == '\\') path.end++;
            if (path.end < data.end && *path.end == '/') continue;
            path.end = path.start;
            for (; path.end < data.end; path.end++) {
                byte each = *path.end;
                count += !is_continuation(each) && !(each == '/' && path.end[-1] == '\\');
                if (is_in_word(each) || each == '-' || each == '.' || each == '~' || each == '%' || each == '/') continue;
                if (each != '\\' || path.end + 1 == data.end || path.end[1] != '/') break;
            }
            if (path.end == data.end || (*path.end != '"' && *path.end != '\'')) {
                path.end = path.start;
                continue;
            }
            if (--count >= MIN_PATH_CHARS && count <= MAX_PATH_CHARS) /* without the quote */
                add_string(walker, PATHS, path);
        }
        add_byte(walker, PATHS, 0);
        if (scan->failed) return 0;
    }
    return 1;
}

/* ---- Loading ---- */

static int get_kind(int value) {
    if (value == 0xC2 || (value >= 0xE1 && value <= 0xE3)) return LEAD;
    if (value == 0 || value > 32) return value ? PLAIN : NUL;
    return value < 9 || (value > 13 && value < 28) ? CONTROL : SPACE;
}

/* Take what Python defines, which it keeps as long as this library is used; return whether it fits. Another thread may
   scan a page meanwhile, so no value changes in between. */
int load(const Settings *given) {
    Text name;
    int at, count = 1;
    call = given->functions;
    settings = given;
    for (at = 0; at < 256; at++) kinds[at] = (byte)get_kind(at), word_kinds[at] = (byte)get_word_kind(at);
    tags[0].name = get_name_at((const byte *)"");
    for (name = get_name_at(given->tags); is_filled(name); name = get_name_at(name.end + 1), count++) {
        if (count == MAX_TAGS) return 0;
        tags[count].name = name;
        tags[count].flags = given->tag_flags[count - 1];
        for (at = OTHER_TAG; at < KINDS_OF_TAG; at++)
            if (equals(name, special_tags[at].start, special_tags[at].length)) tags[count].special = at;
    }
    tag_count = count;
    return 1;
}
