"""The texts that the page begins with, in languages of the model that comes with the package."""

QUERY = "When does the museum open?"

LIST = """\
¿A qué hora abre el museo?
Mi hermana trabaja en un hospital.
Um wie viel Uhr macht die Bibliothek auf?
Der Zug nach Berlin fährt in zehn Minuten ab.
Le musée est fermé le lundi.
Nous cherchons un restaurant près de la gare.
Во сколько открывается музей?
Завтра будет холодно и пойдёт снег.
Müze saat kaçta açılıyor?
Çocuklar bahçede oynuyor.
博物馆什么时候开门？
我想买两张去上海的票。
متى يفتح المتحف؟
يشرب أخي القهوة كل صباح.
What time does the museum close?
The new bridge was finished last year."""

FIRST_TEXT = """\
Our village lies at the foot of a mountain.
In winter the road is often closed by snow.
Then the children cannot go to school.
Nobody is sad about that.
In spring many visitors come to see the flowers."""

SECOND_TEXT = """\
Nuestro pueblo está al pie de una montaña.
En invierno la nieve cierra a menudo la carretera y los niños no pueden ir a la escuela.
Mi abuela hace pan.
En primavera vienen muchos visitantes a ver las flores."""
