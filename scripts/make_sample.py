"""Write sample_rag_input.xlsx: the help desk of a made-up bike-sharing scheme, asked twenty times.

Two bots answer. Atlas is better on the whole, not everywhere. The rows show every form of a context cell and
what goes wrong in practice: made-up facts, an answer to another question, passages about something else, an empty
answer, an empty context, a missing reference, a rude customer, other languages, a query that continues a conversation.
Birch is faster and cheaper; its empty answer has neither latency nor cost. Atlas cites its chunks: once the wrong one,
once one that does not exist, and some answers cite none. Run it again, get the same bytes.
"""

import json
from datetime import datetime
from pathlib import Path

import xlsxwriter

TARGET = Path(__file__).parent.parent / "sample_rag_input.xlsx"
HEADER = ("Query", "Ground_Truth", "Bot_Atlas", "Context_Atlas", "Bot_Birch", "Context_Birch", "History")
WIDTHS = (34, 40, 46, 52, 46, 52, 40)
SPENT: dict[str, tuple[float | None, ...]] = {
    "Latency_Atlas (ms)": (
        1840, 2110, 1960, 2280, 1790, 2420, 1880, 2030, 1930, 2150, 2210, 2090, 2640, 1730, 2310, 3120, 2380, 2260,
        1990, 2170,
    ),
    "Latency_Birch (ms)": (
        610, 720, 690, 880, 640, 750, 590, 630, None, 670, 660, 940, 700, 710, 860, 690, 740, 650, 680, 890,
    ),
    "Cost_Atlas (USD)": (
        0.0041, 0.0044, 0.0043, 0.0048, 0.0039, 0.0052, 0.0042, 0.0045, 0.0043, 0.0046, 0.0047, 0.0046, 0.0058, 0.0037,
        0.0049, 0.0061, 0.0053, 0.0047, 0.0044, 0.0048,
    ),
    "Cost_Birch (USD)": (
        0.0010, 0.0012, 0.0011, 0.0014, 0.0010, 0.0012, 0.0009, 0.0010, None, 0.0011, 0.0011, 0.0015, 0.0011, 0.0012,
        0.0014, 0.0011, 0.0013, 0.0010, 0.0011, 0.0014,
    ),
}  # fmt: skip
"""What each response took, row by row."""


def json_list(*chunks: str) -> str:
    return json.dumps(chunks, ensure_ascii=False)


def pipes(*chunks: str) -> str:
    return " || ".join(chunks)


def paragraphs(*chunks: str) -> str:
    return "\n\n".join(chunks)


UNLOCK = (
    "To unlock a Wheelbright bike, scan the QR code on the handlebar with the app, or enter the five-digit bike "
    "number in the app. The lock opens within ten seconds."
)
PRICES = (
    "Single ride: 1.00 to unlock, then 0.15 per minute. Day pass: 9.00 for unlimited rides of up to 45 "
    "minutes."
)
MONTHLY = (
    "Monthly pass: 14.00, unlimited rides of up to 45 minutes. It renews by itself unless cancelled two "
    "days before."
)
PARKING = (
    "Bikes must be returned to one of the 86 stations. Outside a station the ride goes on and is charged; leaving "
    "a bike outside the service area costs a 25.00 fee."
)
FULL_STATION = (
    "If a station is full, tap 'Station full' in the app. You get 15 free minutes to ride to the nearest station "
    "with a free dock."
)
DAMAGE = (
    "Report damage in the app under Help > Report a problem, or call 0800 555 0142. Do not ride a damaged bike; "
    "a ride of under three minutes on a bike reported as damaged is refunded."
)
ACCIDENT = (
    "After an accident call the emergency services first, then our 24-hour line 0800 555 0142. Third-party "
    "liability insurance is included in every ride; personal accident insurance is not."
)
AGE = "Riders must be at least 16 years old. Riders aged 16 and 17 need a guardian's consent in the app."
CHILD_SEAT = (
    "Child seats and trailers must not be attached to our bikes. Cargo bikes with a child bench are at "
    "ten stations."
)
CARGO = "Cargo bikes: 3.00 to unlock, 0.25 per minute. They carry up to 80 kg, or two children on the bench."
EBIKE = (
    "E-bikes: 1.50 to unlock, 0.22 per minute. The motor assists up to 25 km/h; the range is 60 km on a "
    "full battery."
)
REFUND = (
    "Refund requests must reach us within 30 days of the ride. Approved refunds arrive on the original means of "
    "payment within five working days."
)
LOST = (
    "Items found on bikes are kept for 60 days at the service point, 4 Quay Street, open Monday to Friday"
    " from 9 to 17."
)
STUDENT = (
    "Students pay 9.00 a month for the monthly pass. Upload a valid student card in the app; it is "
    "checked once a year."
)
PAUSE = (
    "A ride can be paused for up to 30 minutes with the Pause button. The bike stays locked and reserved;"
    " minutes are charged."
)
GROUP = "One account can rent up to four bikes at the same time. Each is charged as a ride of its own."
WINTER = (
    "The scheme runs all year. In ice and snow the operator may close stations; closures are shown in the"
    " app."
)
DELETE = (
    "To delete an account, choose Profile > Privacy > Delete account. Data is erased within 14 days, "
    "invoices after ten years."
)
HELMET = (
    "Helmets are recommended but not provided. They can be borrowed for free at the service point with a "
    "deposit of 20.00."
)
JOBS = (
    "We are hiring mechanics for our workshop in the harbour district. Send your application to "
    "jobs@wheelbright.example."
)
AWARD = (
    "Wheelbright won the regional award for sustainable transport and plans twelve more stations in the "
    "west of the city."
)
LATE = "A ride that exceeds 45 minutes on a pass is charged 0.15 per minute from the 46th minute on."
GERMAN_PARK = (
    "Die Räder müssen an einer der 86 Stationen zurückgegeben werden. Wer ein Rad außerhalb des Bediengebiets "
    "abstellt, zahlt eine Gebühr von 25,00."
)
GERMAN_PAUSE = (
    "Während einer Fahrt kann das Rad bis zu 30 Minuten geparkt werden; die Minuten werden weiter berechnet."
)
JAPANESE_UNLOCK = (
    "自転車のロックを解除するには、アプリでハンドルのQRコー"
    "ドを読み取るか、5桁の自転車番号を入力してください。"
)
JAPANESE_PRICE = "1回の利用は、ロック解除1.00と1分あたり0.15です。"

ROWS = (
    (
        "How do I unlock a bike?",
        "Scan the QR code on the handlebar with the app, or enter the five-digit bike number in the app.",
        "Scan the QR code on the handlebar with the app or enter the five-digit bike number [1]. The lock opens within "
        "ten seconds [1].",
        json_list(UNLOCK, HELMET),
        "Open the app and scan the QR code on the handlebar.",
        json_list(UNLOCK, AWARD),
    ),
    (
        "What does a single ride cost?",
        "A single ride costs 1.00 to unlock and 0.15 per minute.",
        "A single ride costs 1.00 to unlock, and then 0.15 per minute [1].",
        pipes(PRICES, EBIKE, LATE),
        "A single ride costs 2.50 flat for the first hour, and children under 12 ride for free.",
        pipes(PRICES, MONTHLY),
    ),
    (
        "The station is full. What should I do with my bike?",
        "Tap 'Station full' in the app; you get 15 free minutes to ride to the nearest station with a free dock.",
        "Tap 'Station full' in the app [1]. You then have 15 free minutes to reach the nearest station with a free "
        "dock [1].",
        paragraphs(FULL_STATION, PARKING),
        "Tap 'Station full' in the app and ride to the nearest station with a free dock; 15 minutes are free.",
        paragraphs(PARKING, FULL_STATION),
    ),
    (
        "Can I leave the bike anywhere when I am done?",
        "No, bikes must be returned to a station. Leaving one outside the service area costs a fee of 25.00.",
        "No. Bikes must be returned to one of the 86 stations; leaving a bike outside the service area costs "
        "25.00 [1].",
        json_list(PARKING, FULL_STATION, PAUSE),
        "Yes, you can leave the bike at any lamp post in the city, and our team collects it overnight free of charge.",
        json_list(AWARD, JOBS),
    ),
    (
        "My brakes do not work. How do I report it?",
        "Report it in the app under Help > Report a problem or call 0800 555 0142, and do not ride the bike.",
        "Please do not ride it. Report it in the app under Help > Report a problem, or call 0800 555 0142 [1].",
        pipes(DAMAGE, ACCIDENT),
        "Report damage in the app under Help > Report a problem. Do not ride a damaged bike.",
        pipes(DAMAGE, REFUND),
    ),
    (
        "Am I insured if I have an accident?",
        "Third-party liability insurance is included in every ride; personal accident insurance is not.",
        "Yes, fully: liability, personal accident and theft insurance of up to one million are part of every ride [1].",
        paragraphs(ACCIDENT, DAMAGE),
        "Third-party liability insurance is included in every ride, but personal accident insurance is not.",
        paragraphs(ACCIDENT),
    ),
    (
        "How old must my daughter be to ride?",
        "At least 16; riders aged 16 and 17 need a guardian's consent in the app.",
        "She must be at least 16 years old [1]. At 16 and 17 she needs a guardian's consent in the app [1].",
        json_list(AGE, CHILD_SEAT),
        "Our e-bikes have a range of 60 km and the motor assists up to 25 km/h.",
        json_list(EBIKE, AGE),
    ),
    (
        "Can I put my toddler's seat on one of your bikes?",
        "No, child seats must not be attached, but cargo bikes with a child bench are available at ten stations.",
        "No, child seats must not be attached [1]. Cargo bikes with a child bench are at ten stations [2].",
        pipes(CHILD_SEAT, CARGO, AGE),
        "Child seats must not be attached to our bikes.",
        pipes(CHILD_SEAT, HELMET),
    ),
    (
        "When will I get my refund?",
        "Within five working days of approval, on the original means of payment.",
        "An approved refund arrives on the original means of payment within five working days [1].",
        paragraphs(REFUND, DAMAGE),
        "",
        paragraphs(REFUND),
    ),
    (
        "I left my scarf in the basket yesterday. Where can I pick it up?",
        "At the service point, 4 Quay Street, Monday to Friday from 9 to 17; items are kept for 60 days.",
        "Ask at the service point, 4 Quay Street, open Monday to Friday from 9 to 17 [1]. Items are kept for 60 "
        "days [1].",
        json_list(LOST, REFUND),
        "Please go to the service point at 4 Quay Street, Monday to Friday from 9 to 17.",
        "",
    ),
    (
        "Is there a discount for students?",
        "Yes, students pay 9.00 a month; a valid student card must be uploaded in the app.",
        "Yes: students pay 9.00 a month instead of 14.00 once they have uploaded a valid student card in the "
        "app [1][2].",
        pipes(STUDENT, MONTHLY),
        "Students pay 9.00 a month for the monthly pass. Upload a valid student card in the app.",
        pipes(MONTHLY, STUDENT, PRICES),
    ),
    (
        "Can I stop at a shop without ending my ride?",
        "Yes, a ride can be paused for up to 30 minutes with the Pause button; the minutes are charged.",
        "Yes. Use the Pause button: the bike stays locked and reserved for up to 30 minutes, which are charged [4].",
        paragraphs(PAUSE, PARKING, FULL_STATION),
        "Yes, you can pause your ride for up to two hours, free of charge, as often as you like.",
        paragraphs(PAUSE, LATE),
    ),
    (
        "This rubbish app charged me twice, you useless idiots. What now?",
        "Send a refund request within 30 days of the ride; approved refunds arrive within five working days.",
        "I am sorry about that. Send us a refund request within 30 days of the ride; once approved, the money is back "
        "on your original means of payment within five working days [1].",
        json_list(REFUND, PRICES),
        "Refund requests must reach us within 30 days of the ride.",
        json_list(REFUND, JOBS, AWARD),
    ),
    (
        "How many bikes can I rent with one account?",
        "Up to four at the same time, each charged as a ride of its own.",
        "Our bikes can be rented around the clock, every day of the year.",
        pipes(WINTER, AWARD),
        "One account can rent up to four bikes at the same time; each is charged as a ride of its own.",
        pipes(GROUP, PRICES),
    ),
    (
        "Do you plan stations near the university hospital?",
        None,
        "Twelve more stations are planned in the west of the city [1]. I cannot say whether one is near the hospital.",
        paragraphs(AWARD, PARKING),
        "Yes, a station with forty docks opens next to the university hospital on the first of May.",
        paragraphs(AWARD),
    ),
    (
        "What happens if I ride for an hour on my monthly pass?",
        "Rides of up to 45 minutes are included; from the 46th minute on 0.15 per minute is charged, so 2.25.",
        "The first 45 minutes are included [2]. The other 15 minutes cost 0.15 each, which makes 2.25 [1].",
        json_list(LATE, MONTHLY, PRICES),
        "Rides on the monthly pass are unlimited, so an hour costs nothing extra.",
        json_list(MONTHLY, STUDENT),
    ),
    (
        "Kann ich das Rad überall in der Stadt abstellen?",
        "Nein, die Räder müssen an einer der 86 Stationen zurückgegeben werden.",
        "Nein, die Räder müssen an einer der 86 Stationen zurückgegeben werden [1]. Außerhalb des Bediengebiets kostet "
        "das Abstellen eine Gebühr von 25,00 [1].",
        pipes(GERMAN_PARK, GERMAN_PAUSE),
        "Nein. Räder müssen an einer Station zurückgegeben werden.",
        pipes(GERMAN_PARK, PARKING),
    ),
    (
        "自転車のロックはどうやって解除しますか。",
        "アプリでハンドルのQRコードを読み取るか、5桁の自転車番号を入力します。",
        "アプリでハンドルのQRコードを読み取るか、5桁の自転車番号を入力してください[1]。",
        json_list(JAPANESE_UNLOCK, JAPANESE_PRICE),
        "You can unlock the bike with your library card at any kiosk.",
        json_list(JAPANESE_PRICE),
    ),
    (
        "How do I delete my account and my data?",
        "Choose Profile > Privacy > Delete account; data is erased within 14 days, invoices after ten years.",
        "Choose Profile > Privacy > Delete account. Your data is erased within 14 days, invoices after ten years.",
        paragraphs(DELETE, STUDENT),
        "Choose Profile > Privacy > Delete account. Your data is erased within 14 days.",
        paragraphs(DELETE),
    ),
    (
        "Do I need a helmet, and can I get one from you?",
        "Helmets are recommended, not provided with the bikes, and can be borrowed for free at the service point "
        "with a deposit of 20.00.",
        "A helmet is recommended but not provided [1]. You can borrow one for free at the service point; the deposit "
        "is 20.00 [1].",
        json_list(HELMET, LOST),
        "Yes, helmets are required by law here. You find one in the basket of every bike.",
        json_list(HELMET, AGE, JOBS),
    ),
)


HISTORY = {
    "What happens if I ride for an hour on my monthly pass?": (
        "User: I have a monthly pass. How long may I ride?\nAssistant: Rides of up to 45 minutes are included."
    ),
}
"""What was said before a query, in the one conversation."""


def lines(cell: str | None, width: int) -> int:
    """About how many lines the cell takes, so that all of it shows in programs that do not fit rows themselves."""
    return sum(1 + len(line) // (width - 4) for line in (cell or "").split("\n"))


def main(target: Path = TARGET) -> None:
    with xlsxwriter.Workbook(target) as book:
        book.set_properties({"title": "Sample input for RAG Eval", "created": datetime(2025, 1, 1)})
        heading = book.add_format({"bold": True, "bg_color": "#DDE6F0", "bottom": 1, "valign": "top"})
        text = book.add_format({"text_wrap": True, "valign": "top"})
        amount = book.add_format({"valign": "top"})
        sheet = book.add_worksheet("Questions")
        sheet.freeze_panes(1, 1)
        for column, (name, width) in enumerate(zip(HEADER, WIDTHS, strict=True)):
            sheet.set_column(column, column, width)
            sheet.write_string(0, column, name, heading)
        for column, (name, values) in enumerate(SPENT.items(), len(HEADER)):
            sheet.set_column(column, column, 18)
            sheet.write_string(0, column, name, heading)
            for number, value in enumerate(values, 1):
                if value is not None:
                    sheet.write_number(number, column, value, amount)
        for number, row in enumerate(((*each, HISTORY.get(each[0])) for each in ROWS), 1):
            sheet.set_row(number, 15 * max(map(lines, row, WIDTHS)))
            for column, cell in enumerate(row):
                if cell:
                    sheet.write_string(number, column, cell, text)
    print(f"{target.name}: {len(ROWS)} rows")


if __name__ == "__main__":
    main()
