"""Names of months and weekdays in the most common languages, for parsing written dates.

Source: Unicode CLDR; months also in the grammatical case used after a number.
"""

# ruff: noqa: RUF001  letters of other alphabets are intended

from functools import lru_cache

MIN_LETTERS = 3  # of an abbreviation, "Okt" or "févr."; shorter ones are too ambiguous

# One line per language, or for two similar ones, starting with January; a bar separates names of the same month.
_MONTHS = """
January February March April May June July August September October November December
Januar|Jänner Februar|Feber März April Mai Juni Juli August September Oktober November Dezember
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
januari februari maart|mars april mei|maj juni juli augustus|augusti september oktober november december
januar februar marts|mars april maj|mai juni juli august september oktober november december|desember
tammikuu helmikuu maaliskuu huhtikuu toukokuu kesäkuu heinäkuu elokuu syyskuu lokakuu marraskuu joulukuu
styczeń|stycznia luty|lutego marzec|marca kwiecień|kwietnia maj|maja czerwiec|czerwca lipiec|lipca sierpień|sierpnia \
wrzesień|września październik|października listopad|listopada grudzień|grudnia
leden|ledna únor|února březen|března duben|dubna květen|května červen|června červenec|července srpen|srpna \
září říjen|října listopad|listopadu prosinec|prosince
январь|января февраль|февраля март|марта апрель|апреля май|мая июнь|июня июль|июля август|августа \
сентябрь|сентября октябрь|октября ноябрь|ноября декабрь|декабря
січень|січня лютий|лютого березень|березня квітень|квітня травень|травня червень|червня липень|липня \
серпень|серпня вересень|вересня жовтень|жовтня листопад|листопада грудень|грудня
Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık
január február március április május június július augusztus szeptember október november december
ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie
Ιανουάριος|Ιανουαρίου Φεβρουάριος|Φεβρουαρίου Μάρτιος|Μαρτίου Απρίλιος|Απριλίου Μάιος|Μαΐου Ιούνιος|Ιουνίου \
Ιούλιος|Ιουλίου Αύγουστος|Αυγούστου Σεπτέμβριος|Σεπτεμβρίου Οκτώβριος|Οκτωβρίου Νοέμβριος|Νοεμβρίου \
Δεκέμβριος|Δεκεμβρίου
"""
_WEEKDAYS = """
Monday Tuesday Wednesday Thursday Friday Saturday Sunday
Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonnabend Sonntag
lundi mardi mercredi jeudi vendredi samedi dimanche
lunes martes miércoles jueves viernes sábado domingo
lunedì martedì mercoledì giovedì venerdì sabato domenica
segunda terça quarta quinta sexta sábado domingo segunda-feira terça-feira quarta-feira quinta-feira sexta-feira
maandag dinsdag woensdag donderdag vrijdag zaterdag zondag
måndag tisdag onsdag torsdag fredag lördag söndag mandag tirsdag lørdag søndag
maanantai tiistai keskiviikko torstai perjantai lauantai sunnuntai
poniedziałek wtorek środa czwartek piątek sobota niedziela
pondělí úterý středa čtvrtek pátek neděle
понедельник вторник среда четверг пятница суббота воскресенье
понеділок вівторок середа четвер пʼятниця субота неділя
Pazartesi Salı Çarşamba Perşembe Cuma Cumartesi Pazar
hétfő kedd szerda csütörtök péntek szombat vasárnap
luni marți miercuri joi vineri sâmbătă duminică
Δευτέρα Τρίτη Τετάρτη Πέμπτη Παρασκευή Σάββατο Κυριακή
月 火 水 木 金 土 日 一 二 三 四 五 六
"""
_MONTH_LINES = _MONTHS.strip().lower().split("\n")
_MONTH_BY_NAME = {
    name: n for line in _MONTH_LINES for n, names in enumerate(line.split(), start=1) for name in names.split("|")
}
_WEEKDAY_NAMES = frozenset(_WEEKDAYS.lower().split())


@lru_cache(4096)
def parse_months(word: str) -> frozenset[int]:
    """Return the months (1 to 12) that a word may name, in full or abbreviated; usually none."""
    plain = word.lower().rstrip(".")
    if len(plain) < MIN_LETTERS or not plain.isalpha():
        return frozenset()
    exact_month = _MONTH_BY_NAME.get(plain)
    if exact_month is not None:
        return frozenset({exact_month})
    return frozenset(month for name, month in _MONTH_BY_NAME.items() if name.startswith(plain))


@lru_cache(4096)
def is_weekday(word: str) -> bool:
    """Return whether a word is the name of a weekday or an abbreviation of one."""
    plain = word.lower().rstrip(".")
    if plain in _WEEKDAY_NAMES:
        return True
    return len(plain) >= MIN_LETTERS and any(name.startswith(plain) for name in _WEEKDAY_NAMES)
