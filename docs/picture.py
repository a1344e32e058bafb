#!/usr/bin/python3
"""Draws docs/report.png from a report: the changes of the pass norm_quant, and one node that it made.

    ./dev picture
"""
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "viz"))
from browser import chromium, errors  # noqa: E402

PASS, OP = "norm_quant", "rms_norm_static_fp8_quant"


def main():
    report, picture = Path(sys.argv[1]).resolve(), sys.argv[2]
    driver = chromium(1280, 860)
    try:
        driver.get(report.as_uri() + "#graph")
        driver.find_element("xpath", f"//*[@id='passes']//tr[td[text()='{PASS}']]").click()
        made = "[...Array(data.count).keys()].find(n => data.op(n) === arguments[0])"
        driver.execute_script(f"stage.pick({{ node: {made} }})", OP)
        time.sleep(0.5)  # the next frame
        driver.save_screenshot(picture)
        complaints = errors(driver)
    finally:
        driver.quit()
    print("\n".join(complaints) or f"{picture}: {Path(picture).stat().st_size} bytes")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
