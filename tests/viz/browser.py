"""A headless Chromium for tests of pages, or a loud skip where there is none."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
SHARED = Path(os.environ.get("PW_SHARED_DATA", "../shared/data"))
SHOTS = BIN.parent / "screenshots"


def require_chromium():
    """Ends the program with 77 where Chromium, its driver or selenium is missing."""
    missing = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    try:
        import selenium  # noqa: F401
    except ImportError:
        missing.append("python3-selenium")
    if missing:
        print(f"SKIPPED: no {', '.join(missing)}: ./dev test installs chromium, chromium-driver and python3-selenium")
        sys.exit(77)


def chromium(width=1400, height=900):
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = shutil.which("chromium")
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--window-size={width},{height}",
        "--force-device-scale-factor=1",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    driver.set_script_timeout(600)  # the default of 30 seconds is too short for a large page on a busy machine
    driver.set_page_load_timeout(600)
    return driver


def run(program, *arguments):
    """Returns the program's standard output; fails the test if the program fails."""
    done = subprocess.run([str(BIN / program), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{program} {' '.join(map(str, arguments))}: {done.stderr}"
    return done.stdout


def errors(driver):
    """Returns the console's errors and warnings, without advice on speed."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
