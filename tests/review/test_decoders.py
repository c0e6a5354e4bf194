"""Pictures are decoded in processes that are ended when one hangs, crashes or fills the memory."""

import os
import signal
import struct
import sys
import threading
import time

import pytest
from PIL import Image

from balancemix.pictures import MAX_PIXELS, NotShown, PictureFile
from balancemix.review.decoders import Decoder, Decoders

PATIENCE = 60.0  # seconds until something counts as stuck, on a busy machine


@pytest.fixture
def open_decoders():
    """Open decoders, and end them after the test."""
    made = []

    def make(number=1, max_pixels=MAX_PIXELS, seconds=PATIENCE):
        made.append(Decoders(number, max_pixels, seconds))
        return made[-1]

    yield make
    for each in made:
        each.close()


def drawn(folder, name="a.png", size=(40, 20)):
    Image.new("RGB", size, "red").save(folder / name)
    return PictureFile.find(folder / name, folder)


def endless(folder, name="endless.jpg", scans=20_000):
    """Write a JPEG of 3 MB that takes minutes: it refines 67 megapixels again and again."""

    def segment(marker, content):
        return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content

    def table(kind, symbol):  # of a code that has one word, a 0
        return bytes([kind, 1, *[0] * 15, symbol])

    side, run = 8192, 16_384  # a run of that many blocks in which nothing changes is 15 zeros
    blocks = (side // 8) ** 2
    parts = [
        b"\xff\xd8",
        segment(0xDB, b"\0" + b"\1" * 64),
        segment(0xC2, struct.pack(">BHHB", 8, side, side, 1) + b"\1\x11\0"),  # progressive, grey
        segment(0xC4, table(0x00, 0) + table(0x10, 0xE0)),
        segment(0xDA, b"\1\1\0\0\0\0") + bytes(blocks // 8),
        (segment(0xDA, b"\1\1\0\1\x3f\0") + bytes(blocks // run * 15 // 8)) * scans,
        b"\xff\xd9",
    ]
    (folder / name).write_bytes(b"".join(parts))
    return PictureFile.find(folder / name, folder)


def refusal(decoders, file):
    with pytest.raises(NotShown) as raised:
        decoders.jpeg(file, 256, 85)
    return raised.value.reason, str(raised.value)


def process_of(decoders):
    return decoders._all[0]._process


def test_a_picture_that_takes_too_long_is_ended_inside_the_decoder(open_decoders, tmp_path):
    decoders = open_decoders(seconds=1.0)
    fine = drawn(tmp_path)
    before = time.monotonic()
    reason, message = refusal(decoders, endless(tmp_path))
    assert reason == "slow"
    assert message == "endless.jpg takes longer than 1 s to read; it is not shown."
    assert time.monotonic() - before < 20  # the start of the process counts here, not there
    assert process_of(decoders) is None  # it does not go on by itself
    decoders._all[0].seconds = PATIENCE
    assert decoders.jpeg(fine, 256, 85).startswith(b"\xff\xd8")


def test_one_process_decodes_many_pictures(open_decoders, tmp_path):
    decoders, file = open_decoders(), drawn(tmp_path)
    content = decoders.jpeg(file, 256, 85)
    process = process_of(decoders)
    assert decoders.jpeg(file, 256, 85) == content
    assert process_of(decoders) is process


def test_what_pillow_refuses_ends_no_process(open_decoders, tmp_path):
    decoders = open_decoders(max_pixels=100)
    message = "a.png has 0.0008 megapixels, the limit is 0.0001 (`--max-pixels`)."
    assert refusal(decoders, drawn(tmp_path)) == ("large", message)
    process = process_of(decoders)
    (tmp_path / "b.png").write_bytes(b"no picture")
    file = PictureFile.find(tmp_path / "b.png", tmp_path)
    assert refusal(decoders, file)[0] == "unreadable"
    assert process_of(decoders) is process


def test_a_decoder_that_crashes_is_replaced(open_decoders, tmp_path):
    decoders, file = open_decoders(), endless(tmp_path)
    decoders.jpeg(drawn(tmp_path), 256, 85)
    process = process_of(decoders)
    threading.Timer(0.3, process.kill).start()  # as the system does when memory is short
    message = "endless.jpg cannot be read (its decoder crashed)."
    assert refusal(decoders, file) == ("unreadable", message)
    assert decoders.jpeg(drawn(tmp_path, "b.png"), 256, 85)


def test_one_that_died_between_two_pictures_is_replaced(open_decoders, tmp_path):
    decoders, file = open_decoders(), drawn(tmp_path)
    content = decoders.jpeg(file, 256, 85)
    process_of(decoders).kill()
    process_of(decoders).wait()
    assert decoders.jpeg(file, 256, 85) == content


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_a_picture_that_needs_too_much_memory(open_decoders, tmp_path, monkeypatch):
    monkeypatch.setattr("balancemix.review.decoders._MODULE", "tests.review.small_decoder")
    decoders = open_decoders()
    assert decoders.jpeg(drawn(tmp_path), 256, 85)
    message = "large.png needs more memory than there is to read; it is not shown."
    assert refusal(decoders, drawn(tmp_path, "large.png", (9000, 9000))) == ("large", message)
    assert decoders.jpeg(drawn(tmp_path), 256, 85)


def test_a_decoder_that_does_not_start_is_no_fault_of_the_picture(
    open_decoders, tmp_path, monkeypatch
):
    decoders, file = open_decoders(), drawn(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr("balancemix.review.decoders._MODULE", "json")
        message = "a.png is not shown: the decoder of pictures did not start."
        assert refusal(decoders, file) == ("later", message)
    assert decoders.jpeg(file, 256, 85)


def test_the_decoder_imports_nothing_from_the_current_folder(open_decoders, tmp_path, monkeypatch):
    (tmp_path / "PIL.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    assert open_decoders().jpeg(drawn(tmp_path), 256, 85)


def test_the_decoder_starts_without_pytorch_and_numpy(tmp_path):
    import subprocess

    run = "import sys, balancemix.review.decoder; print({'torch', 'numpy'} & {*sys.modules})"
    reply = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    assert reply.stdout == "set()\n"


def test_no_more_are_decoded_at_a_time_than_there_are_processes(
    open_decoders, tmp_path, monkeypatch
):
    decoders, file = open_decoders(2), drawn(tmp_path)
    lock, here, most, both = threading.Lock(), 0, 0, threading.Event()

    def watched(self, *_):
        nonlocal here, most
        with lock:
            here, most = here + 1, max(most, here + 1)
            if here == 2:
                both.set()
        both.wait(10)
        with lock:
            here -= 1
        return b""

    monkeypatch.setattr(Decoder, "jpeg", watched)
    threads = [threading.Thread(target=decoders.jpeg, args=(file, 512, 85)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 2


@pytest.mark.skipif(os.name != "posix", reason="Windows ends it by itself")
def test_a_decoder_ends_with_its_server(open_decoders, tmp_path):
    decoders = open_decoders()
    decoders.jpeg(drawn(tmp_path), 256, 85)
    process = process_of(decoders)
    process.stdin.close()  # as when the server was killed
    assert process.wait(PATIENCE) == 0


@pytest.mark.skipif(not hasattr(signal, "alarm"), reason="Windows has no alarm")
def test_a_decoder_whose_server_was_killed_does_not_decode_for_ever(open_decoders, tmp_path):
    decoder = open_decoders(seconds=0.5)._all[0]
    decoder._wait_until_ready("a.jpg")
    process = decoder._process
    name = str(endless(tmp_path).path)
    request = f'{{"path": "{name}", "name": "a", "length": 9, "width": 256, "quality": 85}}\n'
    process.stdin.write(request.encode())
    process.stdin.flush()
    assert process.wait(PATIENCE) == -signal.SIGALRM


def test_the_page_stays_alive_beside_a_picture_that_never_ends(make, photos):
    review = make()
    for name in ("0.png", "1.png"):
        endless(photos, name)
    browser = review.browser("Ana")
    review.pictures._decoders.close()
    review.pictures._decoders = Decoders(2, MAX_PIXELS, 2.0)
    replies = {}

    def ask(row):
        replies[row] = review.browser("Ana").get(f"/image/{row}/256")

    threads = [threading.Thread(target=ask, args=(row,)) for row in (0, 1)]
    for thread in threads:
        thread.start()
    saved = browser.answer("2.png", "cat", "present")["saved"]
    assert saved[0]["state"] == "decided"
    assert not replies  # it did not wait for them
    for thread in threads:
        thread.join()
    for row in (0, 1):
        assert replies[row].status_code == 413
        sentence = f"{row}.png takes longer than 2 s to read; it is not shown."
        assert replies[row].json() == {"error": "picture", "message": sentence}
    assert browser.get("/image/3/256").status_code == 200
