"""The words by which authors name the parts of a page, and the texts that are furniture on any page.

The first are the words in classes, ids, roles and microdata; the second are short lines such as "Read more".
"""

# ruff: noqa: RUF001  letters of other alphabets are intended

import re
from functools import lru_cache

from crawler.core.page.scan import BOILERPLATE, CONTENT, PREFORMATTED

# Names of parts, each with the words that stand for it. A word may be a part of a name: "post-body", "postBody".
PART_WORDS = {
    "article": "article entry story blog prose markdown richtext rich wysiwyg rte editorial copy text"
    " paragraph articlebody",
    "post": "post posts",
    "content": "content main body page container",
    "comment": "comment comments disqus respond commentlist",
    "forum": "reply replies answer answers question thread message messages topic discussion forum bbwrapper",
    "product": "product products price prices sku pdp buy item items variant",
    "description": "description desc detail details spec specs specification specifications feature features overview",
    "fold": "accordion tab tabs panel collapse faq faqs toggle",
    "review": "review reviews rating ratings testimonial testimonials stars",
    "list": "list grid card cards tile tiles result results collection catalog row listing",
    "sidebar": "sidebar aside rail widget widgets secondary complementary",
    "menu": "nav navbar navigation menu menus submenu dropdown megamenu menuitem toolbar sitemap language locale",
    "breadcrumb": "breadcrumb breadcrumbs crumb crumbs breadcrumblist",
    "pager": "pagination pager paging prev previous next paginate",
    "header": "header masthead banner topbar branding logo announcement",
    "footer": "footer foot colophon copyright legal bottom contentinfo",
    "related": "related recommend recommended recommendations recommendation similar also trending"
    " popular recirc upsell crosssell suggested suggestions latest recent featured readmore"
    " more",
    "share": "share sharing social socials follow sharebar addtoany facebook twitter",
    "ad": "ad ads advert advertisement sponsor sponsored promo promotion dfp outbrain taboola affiliate"
    " disclaimer donate donation",
    "teaser": "teaser excerpt summary dek preview snippet blurb",
    "consent": "cookie cookies consent gdpr onetrust ccpa privacy",
    "overlay": "modal popup dialog overlay lightbox tooltip toast offcanvas drawer alert notification"
    " notice alertdialog",
    "form": "form newsletter subscribe subscription signup login signin register email search contact"
    " checkbox cart checkout wishlist account",
    "meta": "meta byline date time published tag tags category categories timestamp info label labels badge eyebrow",
    "author": "author authors bio avatar user profile member username",
    "caption": "caption credit figcaption figure image img media video photo thumbnail",
    "toc": "toc tableofcontents outline jump anchors",
    "control": "button buttons btn cta action actions filter filters facet facets sort sorting swatch"
    " quantity option options select selector",
    "hidden": "hidden sr visually screenreader sronly skip noprint print hide",
    "code": "highlight code codehilite language sourcecode pre",
    "hero": "hero jumbotron intro lead subtitle standfirst",
    "title": "title headline heading subheading",
    "slide": "slider carousel gallery swiper slick slide",
}
PART_BITS = {part: 1 << number for number, part in enumerate(PART_WORDS)}
BITS_BY_WORD = {word: PART_BITS[part] for part, words in PART_WORDS.items() for word in words.split()}
# Words that also count within longer ones: "relatedposts", "wpcookienotice". The first one found counts.
_PARTS_OF_WORDS = (
    "comment product description review sidebar widget navbar navig menu breadcrumb paginat header footer related"
    " recommend share social advert sponsor promo cookie consent modal popup overlay newsletter subscri login signup"
    " author caption button filter article entry message"
)
_BITS_OF_PARTS = {
    "navig": PART_BITS["menu"],
    "paginat": PART_BITS["pager"],
    "subscri": PART_BITS["form"],
}
BITS_BY_PART_OF_WORD = {part: _BITS_OF_PARTS.get(part) or BITS_BY_WORD[part] for part in _PARTS_OF_WORDS.split()}
_WITHIN_WORD = re.compile("|".join(BITS_BY_PART_OF_WORD))
MIN_COMPOUND_CHARS = 7  # of a word that is searched for such words
_WORD = re.compile("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

# Elements that say what they hold.
_TAG_PARTS = (
    ("nav", "nav"),
    ("header", "header"),
    ("footer", "footer"),
    ("aside", "aside"),
    ("form", "form fieldset"),
    ("dialog", "dialog"),
    ("table", "table"),
    ("list", "ul ol menu dir"),
    ("definitions", "dl"),
    ("main", "main"),
    ("article", "article"),
    ("section", "section"),
    ("figure", "figure"),
    ("quote", "blockquote"),
    ("details", "details"),
    ("select", "select"),
)
_FIRST_TAG_BIT = len(PART_WORDS)
TAG_BITS = {name: 1 << (_FIRST_TAG_BIT + number) for number, (name, _) in enumerate(_TAG_PARTS)}
BITS_BY_TAG = {tag: TAG_BITS[name] for name, tags in _TAG_PARTS for tag in tags.split()}
_FIRST_FLAG_BIT = _FIRST_TAG_BIT + len(_TAG_PARTS)
FLAG_BITS = {BOILERPLATE: 1 << _FIRST_FLAG_BIT, CONTENT: 2 << _FIRST_FLAG_BIT, PREFORMATTED: 4 << _FIRST_FLAG_BIT}
BIT_COUNT = _FIRST_FLAG_BIT + len(FLAG_BITS)
BIT_NAMES = (*PART_WORDS, *(f"<{name}>" for name, _ in _TAG_PARTS), "boilerplate", "in content", "preformatted")
# The parts that are furniture. A box with most of the page's text is not, however it is named.
FURNITURE_BITS = (
    sum(
        PART_BITS[part]
        for part in (
            *(
                "sidebar",
                "menu",
                "breadcrumb",
                "pager",
                "header",
                "footer",
                "related",
                "share",
                "ad",
                "consent",
                "overlay",
            ),
            *("form", "meta", "author", "toc", "control", "hidden", "comment", "slide", "caption", "title"),
        )
    )
    | sum(TAG_BITS[name] for name in ("nav", "header", "footer", "aside", "form", "dialog"))
    | FLAG_BITS[BOILERPLATE]
)

MAX_NAME_CHARS = 300  # of the classes of a box; utility classes can be thousands of characters long


@lru_cache(maxsize=1 << 15)
def find_parts(tag: str, classes: str, hints: str) -> int:
    """Return the bits of the parts that a box names with its tag, classes and other attributes.

    These have at most MAX_NAME_CHARS characters, so that the cache stays small.
    """
    bits = BITS_BY_TAG.get(tag, 0)
    if (classes or hints) and tag not in {"body", "html"}:
        for word in _WORD.findall(f"{hints} {classes}"):
            bits |= _find_word(word)
    return bits


@lru_cache(maxsize=1 << 15)
def _find_word(word: str) -> int:
    word = word.lower()
    if (bits := BITS_BY_WORD.get(word)) is not None:
        return bits
    if len(word) >= MIN_COMPOUND_CHARS and (match := _WITHIN_WORD.search(word)):
        return BITS_BY_PART_OF_WORD[match[0]]
    return 0


# Kinds of short lines:
PLAIN, FURNITURE, FURNITURE_WORD, COPYRIGHT, DATE, PRICE, NUMBER, SYMBOLS, NOTICE, COLON, SENTENCE = range(11)
KIND_COUNT = 11
MAX_SHORT_CHARS = 80
# Whole lines, without punctuation at the ends, in lower case.
_FURNITURE_LINES = """
    read more|learn more|more|see more|show more|view more|view all|see all|show all|load more|show less
    continue reading|share|share this|share this post|share this article|share on facebook|facebook|twitter|linkedin
    instagram|youtube|pinterest|whatsapp|telegram|reddit|tiktok|email|print|copy link|tweet|pin it|follow us|follow
    x|rss|sign in|sign up|log in|login|logout|log out|register|my account|account|subscribe|subscribe now|join
    join now|create account|home|about|about us|contact|contact us|help|support|faq|faqs|careers|press|blog|news
    shop|store|menu|search|close|open|back|back to top|top|next|previous|prev|skip to content|skip to main content
    skip to navigation|main navigation|privacy|privacy policy|terms|terms of use|terms of service|terms & conditions
    terms and conditions|legal|cookie policy|cookies|cookie settings|accept|accept all|decline|reject all
    manage cookies|sitemap|accessibility|imprint|disclaimer|related posts|related articles|related products
    related topics|related content|you may also like|you might also like|recommended for you|recommended
    popular posts|recent posts|latest posts|latest news|trending|most popular|most read|see also|more from
    categories|archives|tags|comments|leave a comment|leave a reply|post a comment|no comments|reply|report
    add to cart|add to bag|add to basket|buy now|add to wishlist|wishlist|quick view|compare|checkout|cart|basket
    sold out|filter|filters|sort|sort by|clear all|apply|reset|cancel|submit|send|download|go|ok|yes|no|edit|save
    loading|language|advertisement|ad|ads|sponsored|promoted|table of contents|contents|on this page|in this article
    was this page helpful|newsletter|sign up for our newsletter|subscribe to our newsletter|get started|book now
    request a demo|contact sales|get in touch|weiterlesen|mehr|mehr erfahren|mehr lesen|mehr anzeigen|alle anzeigen
    teilen|drucken|anmelden|abmelden|registrieren|konto|startseite|über uns|kontakt|hilfe|suche|suchen|menü
    schließen|zurück|weiter|nach oben|zum inhalt springen|impressum|datenschutz|datenschutzerklärung|agb
    nutzungsbedingungen|alle akzeptieren|ablehnen|cookie-einstellungen|ähnliche artikel
    das könnte sie auch interessieren|auch interessant|kategorien|schlagwörter|kommentare|kommentar schreiben
    antworten|anzeige|in den warenkorb|warenkorb|inhalt|inhaltsverzeichnis|newsletter abonnieren|abonnieren
    lire la suite|en savoir plus|voir plus|voir tout|partager|imprimer|se connecter|connexion|s'inscrire|mon compte
    accueil|à propos|contactez-nous|aide|recherche|rechercher|fermer|retour|suivant|précédent|haut de page
    mentions légales|politique de confidentialité|conditions d'utilisation|tout accepter|refuser|articles similaires
    vous aimerez aussi|catégories|commentaires|laisser un commentaire|répondre|publicité|ajouter au panier|panier
    sommaire|s'abonner|leer más|ver más|ver todo|saber más|compartir|imprimir|iniciar sesión|registrarse|mi cuenta
    inicio|sobre nosotros|contacto|ayuda|buscar|cerrar|volver|siguiente|anterior|aviso legal|política de privacidad
    términos y condiciones|aceptar|aceptar todo|rechazar|artículos relacionados|también te puede interesar
    categorías|etiquetas|comentarios|deja un comentario|responder|publicidad|añadir al carrito|carrito|suscribirse
    suscríbete|leggi di più|scopri di più|continua a leggere|condividi|stampa|accedi|registrati|chi siamo|contatti
    cerca|chiudi|indietro|avanti|precedente|successivo|informativa sulla privacy|note legali|accetta|rifiuta
    articoli correlati|commenti|rispondi|pubblicità|aggiungi al carrello|carrello|iscriviti|sommario|leia mais
    saiba mais|ver mais|compartilhar|partilhar|entrar|cadastre-se|minha conta|início|sobre|contato|ajuda|pesquisar
    fechar|voltar|próximo|política de privacidade|termos de uso|aceitar|artigos relacionados|comentários|publicidade
    lees meer|meer|delen|inloggen|aanmelden|over ons|zoeken|sluiten|terug|volgende|vorige|privacybeleid|reacties
    читать далее|подробнее|ещё|поделиться|войти|регистрация|главная|о нас|контакты|поиск|закрыть|назад|далее
    комментарии|похожие статьи|читайте также|ответить|реклама|в корзину|корзина
    続きを読む|もっと見る|シェア|ログイン|新規登録|ホーム|お問い合わせ
    検索|閉じる|戻る|次へ|前へ|関連記事|コメント|プライバシーポリシー|利用規約|目次
    阅读更多|更多|分享|登录|注册|首页|关于我们|联系我们|搜索|关闭|返回|下一页|上一页|相关文章|评论|隐私政策|使用条款|目录
"""
FURNITURE_LINES = frozenset(line.strip() for line in _FURNITURE_LINES.replace("\n", "|").split("|")) - {""}
# Words that make a short line suspicious.
_FURNITURE_WORDS_TEXT = (
    "cookie cookies copyright newsletter subscribe subscription login signup unsubscribe share sharing facebook"
    " twitter linkedin instagram pinterest whatsapp youtube advertisement sponsored sponsor promo comments comment"
    " reply replies related trending popular recommended account sign privacy terms policy menu search navigation"
    " sitemap views likes follow followers upvote votes permalink edited posted updated published posts joined"
    " cart checkout wishlist filter filters sort sale shipping gdpr affiliate commission teilen datenschutz"
    " kommentare anzeige abonnieren partager commentaires publicité compartir comentarios publicidad condividi"
    " commenti iscriviti skip min read next previous"
)
FURNITURE_WORDS = frozenset(_FURNITURE_WORDS_TEXT.split())
# Words that make a paragraph suspicious.
_NOTICE_WORDS_TEXT = (
    "cookie cookies newsletter newsletters subscribe subscribing unsubscribe affiliate commission commissions"
    " republish copyright advertiser advertisers sponsored inbox donate patreon disclaimer freelance newsletter."
    " newsletter, cookies. cookies, commission. follow javascript browser recaptcha captcha log login register"
    " disqus contributor consent privacy gdpr datenschutz datenschutzerklärung newsletters. confidentialité"
    " privacidad"
)
NOTICE_WORDS = frozenset(_NOTICE_WORDS_TEXT.split())
MAX_NOTICE_CHARS = 500
# The headings of sections: what follows is not part of the text above.
HEADING_KINDS = 5
NO_HEADING, CONTENT_HEADING, RELATED_HEADING, COMMENTS_HEADING, SERVICE_HEADING = range(HEADING_KINDS)
_RELATED_HEADING = re.compile(
    r"\b(?:related|recommended|recommendations|popular|trending|latest|recent|recently|most read|similar|up next"
    r"|read next|read more|see also|more (?:from|on|in|about|stories|articles|news|like|posts|to)|(?:also|might"
    r"|may) (?:like|love|enjoy|be interested)|(?:other|more) (?:articles|posts|stories|products|news|questions"
    r"|topics)|you (?:may|might)|don.t miss|editor.s pick|sponsored|customers? (?:also|who)|viewed|bought together"
    r"|frequently bought|explore more|keep (?:reading|exploring)|featured|hot network|compare|in other news"
    r"|from the blog|what to read|ähnliche|auch interessant|interessieren|meistgelesen|mehr (?:zum|aus|von)|beliebt"
    r"|neueste|weitere|zuletzt|similaires|aussi aimer|à lire|lire aussi|voir aussi|plus lus|derniers|dernières"
    r"|relacionad|también|más le|te puede interesar|últim|correlati|potrebbe|leggi anche|più letti|relacionados"
    r"|leia também|mais lidas|gerelateerd|lees ook|meest gelezen)\b|похожие|читайте также|関連|おすすめ|相关|推荐|人気"
)
_COMMENTS_HEADING = re.compile(
    r"\b(?:comments?|responses?|leave a (?:reply|comment)|join the (?:discussion|conversation)|post a|discussion"
    r"|repl(?:y|ies)|kommentare?|commentaires?|comentarios?|commenti|comentários|reacties|thoughts on)\b|комментари"
    r"|コメント|评论"
)
_SERVICE_HEADING = re.compile(
    r"\b(?:newsletters?|subscribe|sign up|stay (?:up to date|informed|connected|in touch)|follow us|share (?:this"
    r"|on|via)|share|about the author|written by|author|contact(?: us)?|get in touch|cookies?|privacy|categories"
    r"|tags|archives?|navigation|search|menu|log ?in|sign in|advertisement|customer service|quick links"
    r"|useful links|resources|legal|company|about us|support|help|shop|download(?: the)? app|table of contents"
    r"|on this page|in this article|contents|über den autor|kategorien|schlagwörter|archiv|suche|kontakt|newsletter"
    r"|inhalt|à propos|suivez|catégories|partager|sobre el autor|categorías|síguenos|compartir|seguici|categorie"
    r"|condividi|was this|rate this|feedback)\b"
)
# Each match of these expressions in Latin script starts with one of these, at the start of a word.
HEADING_STARTS = (
    "relat|recom|popul|trend|lates|recen|most read|simil|up next|read |see also|more |also |might |may |other |you |don"
    "|edito|spons|custo|viewe|bough|frequ|explo|keep |featu|hot |compa|in other|from the|what to|ähnli|auch |inter"
    "|meist|mehr |belie|neues|weite|zulet|aussi|à lire|lire |voir |plus |derni|relac|tambi|más l|te pu|últim|corre"
    "|potre|leggi|più l|leia |mais |gerel|lees |meest|comme|respo|leave|join |post a|discu|repl|komme|comen|react"
    "|thoug|newsl|subsc|sign |stay |follo|share|about|writt|autho|conta|get in|cooki|priva|categ|tags|archi|navig"
    "|searc|menu|log|adver|quick|usefu|resou|legal|suppo|help|shop|downl|table|on this|in this|conte|über |kateg"
    "|schla|suche|konta|inhal|à propos|suive|catég|parta|sobre|síguen|segui|condi|was this|rate |feedb|comm|contents"
)
COPYRIGHT_SIGNS = "©|copyright|rights reserved|rechte vorbehalten|tous droits"
_COPYRIGHT = re.compile(COPYRIGHT_SIGNS)
DIGIT, LETTER, WORD_CHARACTER, SPACE = map(re.compile, (r"\d", r"[^\W\d_]", r"\w", r"\s"))
MONTHS = (
    "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mär|mai|okt|dez|janv|févr|avr|juin|juil|août|ene|abr|ago|dic|gen"
    "|mag|giu|lug|set|ott"
)
TIME_UNITS = "s|m|h|d|min|mins|minutes?|hours?|days?|weeks?|months?|years?"
_DATE = re.compile(
    rf"\b(?:{MONTHS})[a-zé]*\.?,? \d|\d\.? (?:de )?(?:{MONTHS})|\d[-/.]\d\d?[-/.]\d|\d年|\d:\d\d"
    rf"|\b\d+ ?(?:{TIME_UNITS})(?: ago| read)?\b"
)
CURRENCY_SIGNS, CURRENCY_NAMES = "$€£¥₹", "usd|eur|gbp|kr|zł"
_PRICE = re.compile(rf"[{CURRENCY_SIGNS}]\s?\d|\d\s?(?:[{CURRENCY_SIGNS}]|{CURRENCY_NAMES})(?!\w)")
MAX_DATE_CHARS = 40  # of a line that is a date
LINE_ENDS = '.!?…。！？"”»’)'
COLONS = ":："
PUNCTUATION = " .,:;!?…·•|/\\<>«»‹›→←↑↓▶▸►+-–—*#()[]\"'“”’↓"


@lru_cache(maxsize=1 << 14)
def classify_line(text: str) -> int:
    """Return the kind of a line of at most MAX_SHORT_CHARS characters."""
    lower = text.lower()
    bare = lower.strip(PUNCTUATION)
    if not bare:
        return SYMBOLS
    if bare in FURNITURE_LINES:
        return FURNITURE
    if _COPYRIGHT.search(lower):
        return COPYRIGHT
    if DIGIT.search(bare) and (kind := _classify_numbers(lower)) != PLAIN:
        return kind
    if not FURNITURE_WORDS.isdisjoint(bare.split()):
        return FURNITURE_WORD
    last = text[-1]
    if last in COLONS:
        return COLON
    return SENTENCE if last in LINE_ENDS else PLAIN


def _classify_numbers(lower: str) -> int:
    if _PRICE.search(lower):
        return PRICE
    if len(lower) <= MAX_DATE_CHARS and _DATE.search(lower):
        return DATE
    return PLAIN if LETTER.search(lower) else NUMBER


@lru_cache(maxsize=1 << 12)
def classify_heading(text: str) -> int:
    """Return the kind of a heading of at most MAX_SHORT_CHARS characters."""
    lower = text.lower()
    if _RELATED_HEADING.search(lower):
        return RELATED_HEADING
    if _COMMENTS_HEADING.search(lower):
        return COMMENTS_HEADING
    if len(lower) <= 40 and _SERVICE_HEADING.search(lower):
        return SERVICE_HEADING
    return CONTENT_HEADING


def is_notice(text: str) -> bool:
    """Return whether a paragraph has a word that is typical of notices to readers."""
    return not NOTICE_WORDS.isdisjoint(text.lower().split())
