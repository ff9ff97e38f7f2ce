"""How the page looks: system fonts, no pictures, nothing that is fetched from elsewhere."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from st_paragram.tools.demo_page.colours import HIGHLIGHT_TEXT

_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "Arial", "sans-serif")
_MONO = ("ui-monospace", "Consolas", "Liberation Mono", "monospace")
_BLUE, _DARKER_BLUE = "#1d4ed8", "#1e40af"

STYLE = """
.gradio-container { width: 100%; min-width: 0; max-width: min(1100px, 100vw) !important; margin: 0 auto !important; }
.gradio-container > .main { width: 100%; min-width: 0; box-sizing: border-box; }
.gradio-container button[role="tab"].selected { color: #1d4ed8; font-weight: 600; }
.dark .gradio-container button[role="tab"].selected, .gradio-container.dark button[role="tab"].selected,
.gradio-container .dark button[role="tab"].selected { color: #93c5fd; }
#model input { text-overflow: ellipsis; padding-inline-end: 1.75rem; }
.sp-table thead, .sp-table tbody, .sp-table tr { border: 0 !important; }
#model-note .sp-note { margin: 0; }
.sp-result { overflow-wrap: anywhere; }
.sp-summary { font-size: 1.15rem; margin: 0.5rem 0; }
.sp-note { margin: 0.75rem 0; max-width: 75ch; line-height: 1.5; }
.sp-heading { font-size: 1rem; font-weight: 600; margin: 0.9rem 0 0.35rem; }
.sp-chips { display: flex; flex-wrap: wrap; gap: 0.3rem; list-style: none; padding: 0; margin: 0; }
.sp-chip { color: HIGHLIGHT_TEXT; border: 1px solid #6b7280; border-radius: 0.35rem; padding: 0.2rem 0.45rem;
  display: flex; flex-direction: column; align-items: center; margin: 0; max-width: 100%; }
.sp-chip .sp-piece { color: HIGHLIGHT_TEXT; font-weight: 600; }
.sp-chip .sp-value { color: HIGHLIGHT_TEXT; font-size: 0.8rem; font-variant-numeric: tabular-nums; }
.sp-scroll { overflow-x: auto; margin: 0.5rem 0 1rem; }
.sp-table { border-collapse: collapse; width: 100%; border: 0 !important; }
.sp-table caption { text-align: start; font-weight: 600; padding: 0.35rem 0; caption-side: top; }
.sp-table th, .sp-table td { border: 0 !important; border-bottom: 1px solid #9ca3af !important; padding: 0.4rem 0.6rem;
  vertical-align: top; text-align: start; overflow-wrap: break-word; }
.sp-table .sp-number { text-align: end; white-space: nowrap; font-variant-numeric: tabular-nums; }
.sp-details summary { cursor: pointer; padding: 0.35rem 0; font-weight: 600; }
.sp-message { color: HIGHLIGHT_TEXT; background: #fee2e2; border: 1px solid #991b1b; border-radius: 0.35rem;
  padding: 0.6rem 0.8rem; margin: 0.5rem 0; }
.gradio-container :focus-visible { outline: 3px solid #b45309 !important; outline-offset: 2px !important; }
.dark .gradio-container :focus-visible, .gradio-container.dark :focus-visible { outline-color: #fbbf24 !important; }
@media (max-width: 640px) {
  .sp-table th, .sp-table td { padding: 0.35rem 0.3rem; }
  .gradio-container > .main { padding: 0.75rem !important; }
}
""".replace("HIGHLIGHT_TEXT", HIGHLIGHT_TEXT)


def theme(gradio: ModuleType) -> Any:  # noqa: ANN401 - Gradio's
    """A plain theme; the fonts are those that the reader's machine has."""
    themes = gradio.themes
    fonts, mono = ([themes.Font(name) for name in names] for names in (_FONTS, _MONO))
    made = themes.Base(font=fonts, font_mono=mono, primary_hue="blue", neutral_hue="gray")
    return made.set(
        button_primary_background_fill=_BLUE,
        button_primary_background_fill_hover=_DARKER_BLUE,
        button_primary_background_fill_dark=_BLUE,
        button_primary_background_fill_hover_dark=_DARKER_BLUE,
        button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#ffffff",
        block_label_text_color="#1f2937",
        block_title_text_color="#1f2937",
        block_info_text_color="#4b5563",
        block_info_text_color_dark="#d1d5db",
        body_text_color_subdued="#4b5563",
        body_text_color_subdued_dark="#d1d5db",
    )
