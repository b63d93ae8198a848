//! Drives a headless Chromium over a pair of pipes (Chrome DevTools Protocol).
//!
//! It opens pages, presses keys, takes pictures, and keeps the pages' error messages and
//! requests. Nothing listens on a port.

mod pipe;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::shell::{capture, has, target_folder};
use pipe::Pipe;

/// Why no browser can be started here; `None` if one can.
pub(crate) fn missing() -> Option<String> {
    (!has("chromium", "--version"))
        .then(|| "there is no chromium; cargo xtask ci --only packages installs it".to_owned())
}

/// How a page is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// In pixels.
    pub(crate) width: u32,
    /// In pixels.
    pub(crate) height: u32,
    pub(crate) is_dark: bool,
}

/// A running browser with one page.
pub(crate) struct Browser {
    child: Child,
    pipe: Pipe,
    folder: PathBuf,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Browser {
    /// Starts a browser with a temporary profile, which is removed at the end.
    pub(crate) fn start() -> Result<Self> {
        let folder = target_folder()?.join(format!("browser-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let (to, from) = (folder.join("to"), folder.join("from"));
        capture(Command::new("mkfifo").args([&to, &from]))?;
        // The shell gives the browser its two pipes as descriptors 3 and 4.
        let child = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<\"$TSB_TO\" 4>\"$TSB_FROM\"", "sh"])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .arg("about:blank")
            .env("TSB_TO", &to)
            .env("TSB_FROM", &from)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start chromium")?;
        let pipe = Pipe::open(&to, &from)?;
        let mut browser = Self { child, pipe, folder };
        browser.attach()?;
        Ok(browser)
    }

    fn attach(&mut self) -> Result<()> {
        let target = self.call("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attached = self.call(
            "Target.attachToTarget",
            &json!({ "targetId": target["targetId"], "flatten": true }),
        )?;
        self.pipe.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            self.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(())
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.pipe.call(method, parameters)
    }

    /// Opens a file as a page and waits until it is loaded.
    pub(crate) fn open(&mut self, path: &Path, screen: Screen) -> Result<()> {
        let scheme = if screen.is_dark { "dark" } else { "light" };
        self.call(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": screen.width, "height": screen.height, "deviceScaleFactor": 1, "mobile": screen.width < 600 }),
        )?;
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }),
        )?;
        let path = std::fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))?;
        let begun = self.pipe.events.len();
        let opened = self.call("Page.navigate", &json!({ "url": format!("file://{}", path.display()) }))?;
        if let Some(error) = opened["errorText"].as_str() {
            bail!("cannot open {}: {error}", path.display());
        }
        self.pipe.wait_for("Page.loadEventFired", begun)
    }

    /// The value of an expression in the page; a promise is waited for.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Result<Value> {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", &parameters)?;
        if let Some(details) = answer.get("exceptionDetails") {
            bail!("the page threw: {details}");
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str) -> Result<()> {
        for kind in ["keyDown", "keyUp"] {
            self.call(
                "Input.dispatchKeyEvent",
                &json!({ "type": kind, "key": key, "code": key }),
            )?;
        }
        Ok(())
    }

    /// Drags the mouse from one point to another.
    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) -> Result<()> {
        let steps = [
            ("mouseMoved", from, 0),
            ("mousePressed", from, 1),
            ("mouseMoved", to, 1),
            ("mouseReleased", to, 0),
        ];
        for (kind, (x, y), buttons) in steps {
            let button = if kind == "mouseMoved" && buttons == 0 {
                "none"
            } else {
                "left"
            };
            let event = json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event)?;
        }
        Ok(())
    }

    /// A picture: of the whole page, or of what the screen shows of it.
    pub(crate) fn picture(&mut self, format: &str, is_whole: bool) -> Result<Vec<u8>> {
        let mut parameters = json!({ "format": format, "captureBeyondViewport": is_whole });
        if format != "png" {
            parameters["quality"] = 60.into();
        }
        if !is_whole {
            return decoded(&self.call("Page.captureScreenshot", &parameters)?);
        }
        let size = self.call("Page.getLayoutMetrics", &json!({}))?["cssContentSize"].clone();
        parameters["clip"] = json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1 });
        decoded(&self.call("Page.captureScreenshot", &parameters)?)
    }

    /// The page as it is printed on A4.
    pub(crate) fn print(&mut self) -> Result<Vec<u8>> {
        let parameters = json!({ "printBackground": true, "paperWidth": 8.27, "paperHeight": 11.69 });
        decoded(&self.call("Page.printToPDF", &parameters)?)
    }

    /// Exceptions, errors and warnings of the pages.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let is_complaint = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                ["error", "warning", "assert"].contains(&event["params"]["type"].as_str().unwrap_or_default())
            }
            Some("Log.entryAdded") => {
                ["error", "warning"].contains(&event["params"]["entry"]["level"].as_str().unwrap_or_default())
            }
            _ => false,
        };
        let events = self.pipe.events.iter().filter(is_complaint);
        events.map(|event| event["params"].to_string()).collect()
    }

    /// All requested URLs, except `data:` URLs.
    pub(crate) fn requests(&self) -> Vec<String> {
        let sent = self
            .pipe
            .events
            .iter()
            .filter(|event| event["method"] == "Network.requestWillBeSent");
        let addresses = sent.filter_map(|event| event["params"]["request"]["url"].as_str());
        addresses
            .filter(|address| !address.starts_with("data:"))
            .map(str::to_owned)
            .collect()
    }
}

fn decoded(answer: &Value) -> Result<Vec<u8>> {
    let data = answer["data"].as_str().context("the browser sent no data")?;
    STANDARD.decode(data).context("the browser sent no base64")
}
